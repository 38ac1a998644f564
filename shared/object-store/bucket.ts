/** Objects by key, in a store that other processes use too. Keys are relative to the bucket's prefix. */
export interface Bucket {
  /**
   * Stores a file. It is durable when this resolves, with the file's SHA-256 in hexadecimal. Until then readers get the object that
   * was there before, or all of the new one. Calling it again is harmless.
   */
  putFile(key: string, path: string): Promise<string>;
  /** Writes an object to a new file, and checks its SHA-256. Resolves with that; undefined when there is no such object. */
  getFile(key: string, path: string): Promise<string | undefined>;
  hasObject(key: string): Promise<boolean>;
  /** The objects whose keys begin with `prefix`, in the order of their keys. */
  listObjects(prefix: string): AsyncIterable<StoredObject>;
  /** The distinct parts of keys between `prefix` and the next slash; with '', what comes before the first slash. */
  listFolders(prefix: string): AsyncIterable<string>;
  /** Does nothing when there is no such object. */
  deleteObject(key: string): Promise<void>;
  /** Aborts unfinished uploads that began at least so long ago. Resolves with how many there were. */
  abortUploads(olderThanSeconds: number): Promise<number>;
  /** Closes the connections. */
  close(): Promise<void>;
}

/** An object in a list. */
export interface StoredObject {
  key: string;
  /** Since it was stored, by the clock of the store. */
  ageSeconds: number;
}
