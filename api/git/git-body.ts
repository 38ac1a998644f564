import { AppError } from '#shared/errors.ts';

/**
 * The body of a request. Gzip is decompressed: git sends long negotiations compressed. It is decompressed while it is read, so that
 * a reader with a limit is safe from a body that expands to gigabytes.
 * @throws AppError `validation_failed` when the gzip is broken
 */
export async function* readRequestBody(request: Request): AsyncGenerator<Uint8Array> {
  if (request.body === null) return;
  const encoding = request.headers.get('content-encoding');
  const packed = encoding === 'gzip' || encoding === 'x-gzip';
  const reader: ReadableStreamDefaultReader<Uint8Array> = (
    packed ? request.body.pipeThrough(new DecompressionStream('gzip')) : request.body
  ).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((cause: unknown) => {
        throw packed && cause instanceof TypeError
          ? new AppError('validation_failed', 'The body cannot be decompressed: it is not valid gzip.')
          : cause;
      });
      if (done) return;
      yield value;
    }
  } finally {
    // The rest is not needed.
    await reader.cancel().catch(() => undefined);
  }
}

/** The body of a response, written by the server. */
export interface OutgoingBody {
  readonly readable: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** Resolves when the first bytes are written. */
  readonly begun: Promise<void>;
  /** Aborted when the client is gone. */
  readonly abandoned: AbortSignal;
  /** Resolves when more may be written. @throws when the client is gone */
  write(chunk: Uint8Array): Promise<void>;
  /** Writes the packet that precedes the refs. */
  announce(service: string): Promise<void>;
  end(): void;
  fail(error: Error): void;
}

/** A body for a response. The reader decides how fast it is written. */
export function outgoingBody(): OutgoingBody {
  const begun = Promise.withResolvers<void>();
  const abandoned = new AbortController();
  const { readable, writable } = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>(
    undefined,
    undefined,
    new ByteLengthQueuingStrategy({ highWaterMark: 256 * 1024 }),
  );
  const writer = writable.getWriter();
  writer.closed.catch(() => abandoned.abort());
  const write = async (chunk: Uint8Array): Promise<void> => {
    begun.resolve();
    // A copy: the caller may use its buffer again before the bytes are sent.
    const sent = writer.write(new Uint8Array(chunk));
    sent.catch(() => undefined);
    await writer.ready;
  };
  return {
    readable,
    begun: begun.promise,
    abandoned: abandoned.signal,
    write,
    announce(service) {
      const line = `# service=${service}\n`;
      return write(new TextEncoder().encode(`${(line.length + 4).toString(16).padStart(4, '0')}${line}0000`));
    },
    end: () => void writer.close().catch(() => undefined),
    fail: (error) => void writer.abort(error).catch(() => undefined),
  };
}
