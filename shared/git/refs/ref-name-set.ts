/** The names of refs that exist, and of those that may be added. No name may be a directory of another one. */
export class RefNameSet {
  /** All names, sorted: those below a name come after it. */
  readonly #sorted: readonly string[];
  readonly #present: Set<string>;

  /** @param candidates names that may be added */
  constructor(present: Iterable<string>, candidates: Iterable<string>) {
    this.#present = new Set(present);
    this.#sorted = [...new Set([...this.#present, ...candidates])].sort();
  }

  /** How many refs exist. */
  get size(): number {
    return this.#present.size;
  }

  /** @param name one of the candidates */
  add(name: string): void {
    this.#present.add(name);
  }

  /** A ref that exists and conflicts with `name`, because one would be a directory of the other. */
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
