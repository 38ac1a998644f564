import { AppError } from '#shared/errors.ts';

/**
 * The body of a request, unpacked where the client has packed it: git sends long negotiations so. It is unpacked as it is
 * read, so that what unfolds to gigabytes is of no harm to a reader with a limit.
 * @throws AppError validation_failed when it is packed and broken
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
          ? new AppError('validation_failed', 'The body of the request says that it is gzip, and cannot be unpacked.')
          : cause;
      });
      if (done) return;
      yield value;
    }
  } finally {
    // What is left unread is of no interest any more.
    await reader.cancel().catch(() => undefined);
  }
}

export interface OutgoingBody {
  readonly readable: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** Resolves with the first bytes. */
  readonly begun: Promise<void>;
  /** Aborted when nobody reads any more. */
  readonly abandoned: AbortSignal;
  /** Resolves when more may be written. @throws when nobody reads any more */
  write(chunk: Uint8Array): Promise<void>;
  /** The packet that comes before refs. */
  announce(service: string): Promise<void>;
  end(): void;
  fail(error: Error): void;
}

/** A response's body that is written to; the reader decides how fast. */
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
    // Of its own: the writer's buffer may be used again before the bytes have left.
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
