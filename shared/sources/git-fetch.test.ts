import { expect, it } from 'vitest';
import { ByteReader } from '#shared/byte-reader.ts';
import { encodePacket } from '#shared/git/protocol/pkt-line.ts';
import { readGreeting, readRefAnswer, readTipsAnswer } from './git-fetch.ts';

const mebibyte = 1024 * 1024;

it.each([
  ['greeting', (reader: ByteReader) => readGreeting(reader)],
  ['answer about one ref', (reader: ByteReader) => readRefAnswer(reader, 'refs/heads/main')],
  ['list of branches', (reader: ByteReader) => readTipsAnswer(reader)],
])('a %s that a git host never ends is refused before it takes memory', async (_, read) => {
  const packet = encodePacket(`${'0'.repeat(40)} refs/heads/${'x'.repeat(60_000)}`);
  let sent = 0;
  async function* send(): AsyncGenerator<Uint8Array> {
    // Far more than may be read, so that a failing test ends.
    while (sent < 64 * mebibyte) {
      sent += packet.length;
      yield packet;
    }
  }
  await expect(read(new ByteReader(send()))).rejects.toThrow('its answer is too long');
  expect(sent).toBeLessThan(5 * mebibyte);
});
