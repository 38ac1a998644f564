/** What the operator must fix before this can go on, in one line. */
export class SetupError extends Error {}
