/** An object store that could not be reached, or refused. The message is for the operator's log and holds no secrets. */
export class ObjectStoreError extends Error {
  /** S3's code (`AccessDenied`, `NoSuchBucket`, `SlowDown`), or the network's (`ECONNREFUSED`, `UND_ERR_HEADERS_TIMEOUT`). */
  readonly code: string;
  /** HTTP status; undefined when there was no answer. */
  readonly status: number | undefined;

  constructor(what: string, code: string, status?: number, detail = '') {
    super(`${what}: ${status === undefined ? '' : `${status} `}${code}${detail === '' ? '' : ` (${detail})`}`);
    this.name = 'ObjectStoreError';
    this.code = code;
    this.status = status;
  }
}
