/** A program that speaks git, with whatever it takes to start it. */
export interface GitClient {
  /** With its version. */
  name: string;
  transports: readonly Transport[];
  /** Whether a refspec may have an asterisk. git holds each one without against every ref: thousands take it a minute. */
  patterns: boolean;
  /** A new working copy or repository in `directory`, which does not exist. Rejects with all it said when it fails. */
  clone(server: Address, directory: string): Promise<void>;
  /** @param refspecs as 'refs/heads/main:refs/remotes/origin/main' */
  fetch(server: Address, directory: string, refspecs: readonly string[]): Promise<void>;
  /** @param refspecs as '+refs/heads/a:refs/heads/b', ':refs/heads/gone' */
  push(server: Address, directory: string, refspecs: readonly string[]): Promise<void>;
}

export type Transport = 'ssh' | 'http';

/** Where a repository is, and how to be let in. */
export interface Address {
  transport: Transport;
  url: string;
  /** OpenSSH's format, ed25519. */
  keyFile: string;
  /** The password over HTTP. */
  token: string;
}

/** A client that cannot be had here, and why. */
export interface Skipped {
  name: string;
  because: string;
}

export interface Toolbox {
  /** Kept between runs: what was fetched and built. */
  cache: string;
  /** Paths of git programs to try besides the one in PATH. */
  gits: readonly string[];
}
