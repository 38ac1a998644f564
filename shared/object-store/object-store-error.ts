/** The object store could not be reached, or rejected a request. The message is for the operator's log and contains no secrets. */
export class ObjectStoreError extends Error {
  /** S3's code (`AccessDenied`, `NoSuchBucket`, `SlowDown`), or the network's (`ECONNREFUSED`, `UND_ERR_HEADERS_TIMEOUT`). */
  readonly code: string;
  /** HTTP status; undefined when there was no response. */
  readonly status: number | undefined;

  /** @param what was requested: 'PUT key' */
  constructor(what: string, code: string, status?: number, detail = '') {
    super(`${what}: ${status === undefined ? '' : `${status} `}${code}${detail === '' ? '' : ` (${detail})`}`);
    this.name = 'ObjectStoreError';
    this.code = code;
    this.status = status;
  }
}
