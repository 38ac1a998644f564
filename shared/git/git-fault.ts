/**
 * What a client or its data did wrong. The message is fit for that person: it names the object and the fault.
 * Whatever else is thrown is our own fault, and its text stays inside.
 */
export class GitFault extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'GitFault';
  }
}
