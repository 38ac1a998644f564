const secretName = /KEY|SECRET|TOKEN|PASS|CREDENTIAL|PRIVATE|AUTH|DSN|_URL$|_URI$/i;
const shortestSecret = 8;
const replacement = '[redacted]';

/**
 * A function that replaces the values of variables whose names look secret, also where they are base64- or URL-encoded.
 * Replacing the values of all variables would remove words such as 'production' from every log.
 */
export function createRedactor(variables: Readonly<Record<string, string>>): (text: string) => string {
  const values = Object.entries(variables)
    .filter(([name, value]) => secretName.test(name) && value.length >= shortestSecret)
    .flatMap(([, value]) => [
      value,
      encodeURIComponent(value),
      new TextEncoder().encode(value).toBase64({ omitPadding: true }),
      ...passwordOf(value),
    ]);
  // Longest first: a value that contains another one must be replaced as a whole.
  const needles = [...new Set(values)].toSorted((one, other) => other.length - one.length);
  if (needles.length === 0) return (text) => text;
  return (text) => needles.reduce((redacted, needle) => redacted.replaceAll(needle, replacement), text);
}

/** The password inside a connection URL is a secret of its own. */
function passwordOf(value: string): string[] {
  const password = URL.parse(value)?.password ?? '';
  return password.length >= shortestSecret ? [password, decodeURIComponent(password)] : [];
}
