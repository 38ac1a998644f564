/** Names of refs that are there, and of those that may come. None of them may be a directory of another. */
export class RefNameSet {
  /** All of them, so that what is below a name follows it. */
  readonly #sorted: readonly string[];
  readonly #present: Set<string>;

  /** @param candidates what may be added later */
  constructor(present: Iterable<string>, candidates: Iterable<string>) {
    this.#present = new Set(present);
    this.#sorted = [...new Set([...this.#present, ...candidates])].sort();
  }

  get size(): number {
    return this.#present.size;
  }

  /** @param name one of the candidates */
  add(name: string): void {
    this.#present.add(name);
  }

  /** A name that is there and cannot exist beside `name`, because one would be a directory of the other. */
  conflictWith(name: string): string | undefined {
    for (let slash = name.lastIndexOf('/'); slash > 0; slash = name.lastIndexOf('/', slash - 1)) {
      if (this.#present.has(name.slice(0, slash))) return name.slice(0, slash);
    }
    const prefix = `${name}/`;
    for (let at = this.#firstFrom(prefix); this.#sorted[at]?.startsWith(prefix) === true; at++) {
      const below = this.#sorted[at];
      if (below !== undefined && this.#present.has(below)) return below;
    }
    return undefined;
  }

  #firstFrom(name: string): number {
    let low = 0;
    for (let high = this.#sorted.length; low < high; ) {
      const middle = (low + high) >> 1;
      if ((this.#sorted[middle] ?? '') < name) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
