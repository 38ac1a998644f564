/** Told of what is odd about an object and no reason to refuse it, by the id that git-fsck(1) gives it. */
export type WarningSink = (id: string, text: string) => void;

export const noWarnings: WarningSink = () => undefined;

/** Shown of one push; an old project may have thousands. */
const mostLines = 20;

/** What git, too, only warns of, for the person pushing. */
export class Warnings {
  readonly #lines: string[] = [];
  #count = 0;

  add(oid: Uint8Array, id: string, text: string): void {
    if (++this.#count > mostLines) return;
    // What a pack says may not reach the terminal as anything but text.
    const shown = text.slice(0, 200).replace(/[^ -~]/g, '?');
    this.#lines.push(`warning: object ${Buffer.from(oid).toString('hex')}: ${id}: ${shown}`);
  }

  lines(): readonly string[] {
    return this.#count <= mostLines ? this.#lines : [...this.#lines, `warning: and ${this.#count - mostLines} more of the kind`];
  }
}
