/** Of the connection, of a server that is going or coming, out of disk or connections; as PostgreSQL names them. */
const outageCodes = /^(08...|57P0[1-5]|53[0-3]00|58030)$/;
/** As the operating system names them. */
const lostCodes = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT']);
/** What the client library says without a code. */
const lostMessages = /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect)/;

/**
 * The database cannot be asked at the moment. What was asked of it may have happened or not; the same may succeed in a
 * few seconds.
 */
export function isDatabaseOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? String(error.code) : '';
  // The server's unix socket is not there while it starts.
  if (code === 'ENOENT' && 'syscall' in error && error.syscall === 'connect') return true;
  return outageCodes.test(code) || lostCodes.has(code) || lostMessages.test(error.message);
}
