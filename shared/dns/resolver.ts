/** Asks the domain name system, as it is seen from where the platform runs. */
export interface Resolver {
  /** The TXT records of a name, each in one piece. Empty when there are none, or nobody answers. */
  readTexts(name: string): Promise<readonly string[]>;
}
