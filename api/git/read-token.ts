/** The token in an `Authorization` header: of `Bearer`, or the password of `Basic` with any user name. Undefined without one. */
export function readToken(header: string | null): string | undefined {
  const [, scheme = '', value = ''] = /^(Basic|Bearer) +([A-Za-z0-9+/=_.-]+)$/i.exec(header ?? '') ?? [];
  if (scheme.toLowerCase() === 'bearer') return value;
  if (scheme === '') return undefined;
  try {
    const text = atob(value);
    const token = text.slice(text.indexOf(':') + 1);
    return text.includes(':') && token !== '' ? token : undefined;
  } catch {
    return undefined;
  }
}
