/** What the operator must mend before this can go on, in one line. */
export class SetupError extends Error {}
