/** Objects by key, in a store that other processes use too. Keys are relative to what the store was given as its place. */
export interface Bucket {
  /**
   * Durable when it resolves, with its checksum; whoever reads meanwhile finds what was there before, or all of it. Again is
   * harmless. Resolves with the file's SHA-256 in hexadecimal.
   */
  putFile(key: string, path: string): Promise<string>;
  /** Writes an object to a new file. Resolves with its SHA-256, which is as it was when it was put; undefined without one. */
  getFile(key: string, path: string): Promise<string | undefined>;
  hasObject(key: string): Promise<boolean>;
  /** In order of their keys. */
  listObjects(prefix: string): AsyncIterable<StoredObject>;
  /** The next parts of the keys that go on after `prefix` and a further slash: with '', what is before the first slash. */
  listFolders(prefix: string): AsyncIterable<string>;
  /** Harmless without one. */
  deleteObject(key: string): Promise<void>;
  /** Calls off uploads that were begun so long ago and never finished. Resolves with how many there were. */
  abortUploads(olderThanSeconds: number): Promise<number>;
  /** Ends its connections. */
  close(): Promise<void>;
}

export interface StoredObject {
  key: string;
  /** By the clock of the store. */
  ageSeconds: number;
}
