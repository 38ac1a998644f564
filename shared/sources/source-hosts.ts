/**
 * The port to git hosts and file servers elsewhere. Addresses come from users, so a driver never reaches what the platform's own
 * network holds unless the operator allows that. Faults of the host, the address or the repository are
 * `validation_failed` with a message fit for the owner of the app.
 */
import type { ObjectId } from '#shared/ids.ts';
import type { SourceEntry } from '#shared/platform/builds.ts';

export interface SourceRequest {
  /** https, http or ssh address. */
  url: string;
  /** 'refs/heads/main' */
  ref: string;
  /** Undefined: what `ref` names there now. */
  commit: ObjectId | undefined;
  /** Commits that are here already, and need not be sent again. */
  haves: readonly ObjectId[];
  /** Only the commit that is asked for, without those before it, where the host can do that. */
  withoutHistory?: true;
  signal: AbortSignal;
  /** For an SSH address. */
  key: SourceKey | undefined;
}

export interface SourceKey {
  /** PEM. */
  privateKey: string;
  /** Base64 by `host:port`: what the host showed when it was first seen. */
  hostKeys: Readonly<Record<string, string>>;
}

export interface FetchedSource {
  commit: ObjectId;
  /** A pack with everything that `haves` lack; may be thin. */
  pack: AsyncIterable<Uint8Array>;
  /** Of an SSH host that was not in `hostKeys`. */
  newHostKey?: { host: string; key: string };
}

export interface ArchiveRequest {
  /** https or http address of a tar.gz; the query may hold a signature, so it is in no message. */
  url: string;
  /** 64 hex digits in lower case: what the archive's SHA-256 must be, before anything of it is unpacked. */
  sha256: string | undefined;
  signal: AbortSignal;
}

/** An archive that is here whole, and sound from its first byte to its last. */
export interface FetchedArchive {
  bytes: number;
  sha256: string;
  files: number;
  /** Its files, without a folder that all of them are in, without `.git` and without empty directories. Can be asked for again. */
  read(): AsyncIterable<SourceEntry>;
  /** Forgets it. */
  discard(): Promise<void>;
}

export interface SourceHosts {
  /** Resolves when the pack begins to arrive. Undefined pack bytes are never given: the caller reads it to its end or aborts. */
  fetchSource(request: SourceRequest): Promise<FetchedSource>;
  fetchArchive(request: ArchiveRequest): Promise<FetchedArchive>;
  /** A new ed25519 key pair: PEM, and one line of OpenSSH text without comment. */
  createKey(): Promise<{ privateKey: string; publicKey: string }>;
}
