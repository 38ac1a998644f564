/** Ends a build with a cause for the person who pushed: one line that says what failed and how to fix it. */
export class BuildFailure extends Error {}
