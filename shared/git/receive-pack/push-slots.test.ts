import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type PushTurn, PushTurns } from '#shared/git/receive-pack/push-slots.ts';
import { createFakeGitStorage } from '#shared/git/storage/create-git-storage.ts';
import { newUuid, type RepositoryId } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { TestClock } from '#test/support/test-clock.ts';

const clock = TestClock.standing();
const stays = new AbortController().signal;

/** Asks for turns one after the other. Those that were given, by their number; undefined for the others. */
function asking(turns: PushTurns, count: number, gone = stays): (PushTurn | undefined)[] {
  const given = Array.from({ length: count }, (): PushTurn | undefined => undefined);
  for (let i = 0; i < count; i++) void turns.take(gone).then((turn) => (given[i] = turn));
  return given;
}

const numbers = (given: readonly unknown[]): number[] => given.flatMap((turn, i) => (turn === undefined ? [] : i));

async function pass(milliseconds: number): Promise<void> {
  for (let passed = 0; passed < milliseconds; passed += 50) {
    await setImmediate();
    clock.advance(50);
  }
  await setImmediate();
}

/** A client that sends when it is told to. */
function talking(): { input: AsyncIterable<Uint8Array>; send(): void } {
  let send: (() => void) | undefined;
  const input = (async function* () {
    for (;;) {
      await new Promise<void>((resolve) => {
        send = resolve;
      });
      yield new Uint8Array(1);
    }
  })();
  return { input, send: () => send?.() };
}

test('as many as are allowed go at once, the others in their order as soon as one of them ends', async () => {
  const given = asking(new PushTurns(2, clock), 5);
  await setImmediate();
  expect(numbers(given)).toEqual([0, 1]);
  given[1]?.end();
  given[1]?.end();
  await setImmediate();
  expect(numbers(given)).toEqual([0, 1, 2]);
  given[0]?.end();
  given[2]?.end();
  await setImmediate();
  expect(numbers(given)).toEqual([0, 1, 2, 3, 4]);
});

test('a client that is waited for loses its turn to those who wait, one that sends keeps it', async () => {
  const turns = new PushTurns(2, clock);
  const [silent, busy] = await Promise.all([turns.take(stays), turns.take(stays)]);
  const [nobody, somebody] = [talking(), talking()];
  void silent.watch(nobody.input)[Symbol.asyncIterator]().next();
  const reads = busy.watch(somebody.input)[Symbol.asyncIterator]();
  const given = asking(turns, 2);
  for (let i = 0; i < 3; i++) {
    const read = reads.next();
    await pass(100);
    somebody.send();
    await read;
  }
  expect(numbers(given)).toEqual([0]);
});

test('a push that takes long holds nobody up for more than a second', async () => {
  const turns = new PushTurns(1, clock);
  await turns.take(stays);
  const given = asking(turns, 1);
  await pass(950);
  expect(numbers(given)).toEqual([]);
  await pass(50);
  expect(numbers(given)).toEqual([0]);
});

test('everybody is let in after three seconds, however many wait in front', async () => {
  const turns = new PushTurns(1, clock);
  await turns.take(stays);
  const given = asking(turns, 100);
  await pass(2950);
  expect(numbers(given).length).toBeLessThan(10);
  await pass(50);
  expect(numbers(given)).toHaveLength(100);
});

test('who leaves the queue is told at once, and keeps nobody waiting', async () => {
  const turns = new PushTurns(1, clock);
  const first = await turns.take(stays);
  const leaves = new AbortController();
  const left = asking(turns, 1, leaves.signal);
  const given = asking(turns, 1);
  leaves.abort();
  await setImmediate();
  expect([left.length, numbers(left), numbers(given)]).toEqual([1, [0], []]);
  first.end();
  left[0]?.end();
  await setImmediate();
  expect(numbers(given)).toEqual([0]);
});

test('clients that push at once are shown the refs a few at a time, and silent ones keep nobody out', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'paas-turns-'));
  const storage = createFakeGitStorage({ directory, log: createLog('error', () => undefined), threads: 2, clock });
  const gone = new AbortController();
  let shown = 0;
  const show = async (chunk: Uint8Array): Promise<void> => {
    if (Buffer.from(chunk).toString('latin1').endsWith('0000')) shown++;
  };
  const silent = async function* (): AsyncGenerator<Uint8Array> {
    while (!gone.signal.aborted) await new Promise((resolve) => gone.signal.addEventListener('abort', resolve, { once: true }));
    yield* [];
  };
  const served = Array.from({ length: 6 }, () =>
    storage.server.receivePack(
      { repositoryId: newUuid<RepositoryId>(), headRef: 'refs/heads/main' },
      { input: silent(), write: show, protocol: '', clientGone: gone.signal },
      async () => [],
    ),
  );
  try {
    await expect.poll(() => shown).toBe(2);
    await pass(50);
    expect(shown).toBe(2);
    await pass(150);
    expect(shown).toBe(4);
    await pass(200);
    expect(shown).toBe(6);
  } finally {
    gone.abort();
    await Promise.all(served);
    await storage.close();
    await rm(directory, { recursive: true });
  }
});
