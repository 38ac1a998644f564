/** Port: DNS queries, as answered where the platform runs. */
export interface Resolver {
  /** The TXT records of a name, each as one string. Empty if there are none or no name server answers. */
  readTexts(name: string): Promise<readonly string[]>;
}
