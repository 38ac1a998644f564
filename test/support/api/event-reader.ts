import type { AnswerBody, TestApi, TestUser } from '#test/support/api/test-api.ts';

export interface ReceivedEvent {
  id?: string;
  event?: string;
  data: AnswerBody['data'];
}

export interface EventReader {
  /** The next event, comments left out; rejects when the stream has ended. */
  next(): Promise<ReceivedEvent>;
  /** As a client that hangs up. */
  close(): Promise<void>;
}

export async function openEventStream(
  { api }: TestApi,
  user: TestUser,
  path: string,
  headers: Record<string, string> = {},
): Promise<EventReader> {
  const response = await api.request(path, {
    headers: { authorization: `Bearer ${user.token}`, accept: 'text/event-stream', ...headers },
  });
  if (response.status !== 200 || response.body === null)
    throw new Error(`the stream was refused: ${response.status} ${await response.text()}`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = '';
  return {
    async next() {
      for (;;) {
        const end = buffer.indexOf('\n\n');
        if (end >= 0) {
          const block = buffer.slice(0, end);
          buffer = buffer.slice(end + 2);
          if (!block.startsWith(':')) return parseEvent(block);
          continue;
        }
        const { done, value } = await reader.read();
        if (done) throw new Error('the stream ended');
        buffer += value;
      }
    },
    close: () => reader.cancel(),
  };
}

function parseEvent(block: string): ReceivedEvent {
  const fields = block
    .split('\n')
    .map((line): [string, string] => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]);
  const { data = 'null', ...rest } = Object.fromEntries(fields) as { id?: string; event?: string; data?: string };
  return { ...rest, data: JSON.parse(data) as AnswerBody['data'] };
}
