/** Called with a fault that is no reason to reject an object, by its id in git-fsck(1). */
export type WarningSink = (id: string, text: string) => void;

/** Ignores warnings. */
export const noWarnings: WarningSink = () => undefined;

/** Shown for one push. An old project may have thousands. */
const mostLines = 20;

/** Collects faults that git only warns about, for the person who pushes. */
export class Warnings {
  readonly #lines: string[] = [];
  #count = 0;

  add(oid: Uint8Array, id: string, text: string): void {
    if (++this.#count > mostLines) return;
    // Other bytes could control the terminal that shows the line.
    const shown = text.slice(0, 200).replace(/[^ -~]/g, '?');
    this.#lines.push(`warning: object ${Buffer.from(oid).toString('hex')}: ${id}: ${shown}`);
  }

  /** One line for each warning, and one for those that are not shown. */
  lines(): readonly string[] {
    return this.#count <= mostLines ? this.#lines : [...this.#lines, `warning: and ${this.#count - mostLines} more like these`];
  }
}
