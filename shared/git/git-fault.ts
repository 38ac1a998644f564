/**
 * A fault of the client or of what it sent. The message names the object and the fault, and is shown to the client.
 * Every other error is a fault of the server: its message is logged and not shown.
 */
export class GitFault extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'GitFault';
  }
}
