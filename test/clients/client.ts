/** A git client, and how to run it. */
export interface GitClient {
  /** With its version. */
  name: string;
  transports: readonly Transport[];
  /** Whether refspecs may have an asterisk. git compares each one without with every ref: thousands of them take a minute. */
  patterns: boolean;
  /** Clones into `directory`, which does not exist. Rejects with the client's output when it fails. */
  clone(server: Address, directory: string): Promise<void>;
  /** @param refspecs as 'refs/heads/main:refs/remotes/origin/main' */
  fetch(server: Address, directory: string, refspecs: readonly string[]): Promise<void>;
  /** @param refspecs as '+refs/heads/a:refs/heads/b', ':refs/heads/gone' */
  push(server: Address, directory: string, refspecs: readonly string[]): Promise<void>;
}

/** How a client connects. */
export type Transport = 'ssh' | 'http';

/** A repository, and the credentials for it. */
export interface Address {
  transport: Transport;
  url: string;
  /** An ed25519 key in OpenSSH's format. */
  keyFile: string;
  /** The password over HTTP. */
  token: string;
}

/** A client that is not available here, and why. */
export interface Skipped {
  name: string;
  because: string;
}

/** Where to find and keep clients. */
export interface Toolbox {
  /** What was downloaded and built, kept between runs. */
  cache: string;
  /** Paths of git programs to try besides the one in PATH. */
  gits: readonly string[];
}
