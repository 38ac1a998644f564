/** The start cannot go on, and the operator can mend it: printed as one line, without a stack. */
export class StartError extends Error {}
