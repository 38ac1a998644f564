export interface PostgresMessage {
  /** One letter; '' for the first message of a connection. */
  type: string;
  body: Buffer;
  /** The whole message as it was sent. */
  bytes: Buffer;
}

/** Splits one direction of a connection without TLS into messages (PostgreSQL documentation, "Message Formats"). */
export class MessageSplitter {
  #kind: 'startup' | 'typed';
  #rest: Buffer = Buffer.alloc(0);

  /** @param first 'startup' for what a client sends: its first message has no letter */
  constructor(first: 'startup' | 'typed') {
    this.#kind = first;
  }

  /** @returns the messages that are complete now */
  split(chunk: Buffer): PostgresMessage[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const messages: PostgresMessage[] = [];
    for (;;) {
      const before = this.#kind === 'startup' ? 0 : 1;
      if (this.#rest.length < before + 4) return messages;
      const length = before + this.#rest.readInt32BE(before);
      if (this.#rest.length < length) return messages;
      const bytes = this.#rest.subarray(0, length);
      messages.push({ type: bytes.toString('latin1', 0, before), body: bytes.subarray(before + 4), bytes });
      this.#rest = this.#rest.subarray(length);
      this.#kind = 'typed';
    }
  }
}
