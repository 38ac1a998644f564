const pattern = /^req_[0-9a-f]{32}$/;

/** A new id for a request, by which its log lines and its error response are found: `req_` and 32 hex digits. */
export function newRequestId(): string {
  return `req_${crypto.randomUUID().replaceAll('-', '')}`;
}

/** Whether `newRequestId` could have made the text. */
export function isRequestId(text: string): boolean {
  return pattern.test(text);
}
