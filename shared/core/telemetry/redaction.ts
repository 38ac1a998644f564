import { createLiteralReplacer } from '#shared/core/telemetry/literal-replacer.ts';

const secretName = /KEY|SECRET|TOKEN|PASS|CREDENTIAL|PRIVATE|AUTH|DSN|_URL$|_URI$/i;
const shortestSecret = 8;
const replacement = '[redacted]';
/** A line that is longer than an entry of a log may be is split, wherever that is: entries from this length on may be such parts. */
const shortestPart = 2048;
/** Characters at the end of one part, or at the beginning of the next, by which a secret is recognised. */
const fragment = 4;

/** The variables of one release or build. Secret. */
export type Environment = Readonly<Record<string, string>>;

/** Replaces secrets in the lines of several streams. */
export interface LineRedactor {
  /** @param stream names what the lines belong to: only lines of one stream continue each other */
  redact(stream: string, line: string): string;
}

/**
 * A function that replaces the secrets of environments in a text, also where they are base64-, URL- or JSON-encoded, or one line of a
 * secret of several lines. Secrets are values of at least eight characters of variables whose names look secret, values that
 * look random, and passwords in URLs. Replacing the values of all variables would remove words such as 'production' from every log.
 */
export function createRedactor(...environments: readonly Environment[]): (text: string) => string {
  return createLiteralReplacer(findSecrets(environments).flatMap(encodings), replacement);
}

/** As {@link createRedactor}, for lines. A secret is also replaced if a long line was split in the middle of it, but for up to three characters at either end. */
export function createLineRedactor(...environments: readonly Environment[]): LineRedactor {
  const secrets = [...new Set(findSecrets(environments).flatMap(encodings))];
  const redactWhole = createLiteralReplacer(secrets, replacement);
  let parts: PartIndex | undefined;
  const longest = (found: readonly string[]): string => found.toSorted((one, other) => other.length - one.length)[0] ?? '';

  /** Whether the line before may have been split, by stream. Of a stream's first line it is unknown. */
  const split = new Map<string, boolean>();

  function redactStart(line: string): string {
    const start = line.search(/\S/);
    parts ??= indexParts(secrets);
    const found = parts.get(line.slice(start, start + fragment))?.map(({ from }) => from);
    const cut = longest(found?.filter((from) => line.startsWith(from, start)) ?? []);
    return cut === '' ? line : line.slice(0, start) + replacement + line.slice(start + cut.length);
  }

  function redactEnd(line: string): string {
    parts ??= indexParts(secrets);
    const found = parts.get(line.slice(-fragment))?.map(({ until }) => until);
    const cut = longest(found?.filter((until) => line.endsWith(until)) ?? []);
    return cut === '' ? line : line.slice(0, -cut.length) + replacement;
  }

  return {
    redact(stream, line) {
      const continues = split.get(stream) === true;
      const isSplit = line.length >= shortestPart;
      split.set(stream, isSplit);
      const whole = redactWhole(line);
      const withStart = continues ? redactStart(whole) : whole;
      return isSplit ? redactEnd(withStart) : withStart;
    },
  };
}

/** By the characters at a place in a secret: the secret up to and with them, and from them on. */
type PartIndex = ReadonlyMap<string, readonly { readonly until: string; readonly from: string }[]>;

function indexParts(secrets: readonly string[]): PartIndex {
  const parts = secrets.flatMap((secret) =>
    Array.from({ length: Math.max(0, secret.length - fragment + 1) }, (_, at) => ({
      key: secret.slice(at, at + fragment),
      until: secret.slice(0, at + fragment),
      from: secret.slice(at),
    })),
  );
  return Map.groupBy(parts, ({ key }) => key);
}

function findSecrets(environments: readonly Environment[]): string[] {
  const found = environments.flatMap((environment) =>
    Object.entries(environment).flatMap(([name, value]) => [
      ...((secretName.test(name) && !isPublicUrl(value)) || looksRandom(value) ? [value] : []),
      ...passwordOf(value),
    ]),
  );
  return [...new Set(found.flatMap(withLines))].filter((secret) => secret.length >= shortestSecret);
}

/** A secret of several lines, such as a private key, is printed in several lines. Its frame is no secret. */
function withLines(secret: string): string[] {
  const lines = secret.split(/\r?\n/).map((line) => line.trim());
  return lines.length === 1 ? [secret] : [secret, ...lines.filter((line) => !line.startsWith('-----'))];
}

/** Letters of both cases and digits, long and without words between: as tokens are, whatever the variable is called. */
function looksRandom(value: string): boolean {
  return (
    /^[\w+/=.-]{20,}$/.test(value) && /[A-Z]/.test(value) && /[a-z]/.test(value) && /\d/.test(value) && !/[/.].*[/.]/.test(value)
  );
}

/** An address without credentials: no user, no query, and no long part of the path, as addresses of webhooks have. */
function isPublicUrl(value: string): boolean {
  const url = URL.parse(value);
  return (
    url !== null &&
    url.host !== '' &&
    url.username === '' &&
    url.password === '' &&
    url.search === '' &&
    url.pathname.split('/').every((part) => part.length < 16)
  );
}

/** The password inside a connection URL is a secret of its own. */
function passwordOf(value: string): string[] {
  const password = URL.parse(value)?.password ?? '';
  return password === '' ? [] : [password, decodePercents(password)];
}

function decodePercents(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** What a secret may look like in a text. */
function encodings(secret: string): string[] {
  return [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1), ...base64Forms(secret)];
}

/** Alone and as a part of a longer text, where only the characters that do not depend on its neighbours are known. */
function base64Forms(secret: string): string[] {
  const bytes = new TextEncoder().encode(secret);
  const forms = [0, 1, 2].map((before) => {
    const shifted = new Uint8Array(before + bytes.length);
    shifted.set(bytes, before);
    return shifted.toBase64({ omitPadding: true }).slice(before === 0 ? 0 : before + 1, Math.floor((shifted.length * 8) / 6));
  });
  const all = [bytes.toBase64(), bytes.toBase64({ omitPadding: true }), ...forms];
  return [...all, ...all.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))];
}
