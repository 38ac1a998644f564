/**
 * JSON for the arguments and results of calls between processes of the platform. Beside the values of JSON it carries dates, bytes,
 * maps, `undefined` in lists, and the place of an abort signal.
 */

/** Stands where the caller gave an abort signal: the callee gets its own, which aborts when the connection ends. */
const signalTag = '$signal';

/** @throws TypeError for a value that cannot be sent, such as a function */
export function encodeValue(value: unknown): string {
  return JSON.stringify(toJson(value));
}

/**
 * @param signal is put where the caller gave one
 * @throws SyntaxError for text that is not JSON
 */
export function decodeValue(text: string, signal?: AbortSignal): unknown {
  return fromJson(JSON.parse(text), signal);
}

function toJson(value: unknown): unknown {
  if (value === undefined) return { $undefined: true };
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  if (value instanceof Date) return { $date: value.getTime() };
  if (value instanceof Uint8Array) return { $bytes: value.toBase64() };
  if (value instanceof AbortSignal) return { [signalTag]: true };
  if (value instanceof Map) return { $map: [...value].map(([key, item]) => [toJson(key), toJson(item)]) };
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value !== 'object') throw new TypeError(`A ${typeof value} cannot be sent to another process.`);
  const entries = Object.entries(value).flatMap(([key, item]) => (item === undefined ? [] : [[key, toJson(item)] as const]));
  // A key such as '$date' would be taken for one of the tags.
  return entries.some(([key]) => key.startsWith('$')) ? { $object: entries } : Object.fromEntries(entries);
}

function fromJson(value: unknown, signal: AbortSignal | undefined): unknown {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map((item) => fromJson(item, signal));
  const entries = Object.entries(value);
  const [tag, content] = entries.length === 1 ? (entries[0] ?? []) : [];
  switch (tag) {
    case '$undefined':
      return undefined;
    case '$date':
      return new Date(content as number);
    case '$bytes':
      return Uint8Array.fromBase64(content as string);
    case '$map':
      return new Map((content as [unknown, unknown][]).map(([key, item]) => [fromJson(key, signal), fromJson(item, signal)]));
    case '$object':
      return Object.fromEntries((content as [string, unknown][]).map(([key, item]) => [key, fromJson(item, signal)]));
    case signalTag:
      return signal;
    default:
      return Object.fromEntries(entries.map(([key, item]) => [key, fromJson(item, signal)]));
  }
}
