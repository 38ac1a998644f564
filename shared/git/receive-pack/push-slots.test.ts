import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type PushSlot, PushSlots } from '#shared/git/receive-pack/push-slots.ts';
import { createFakeGitStorage } from '#shared/git/storage/fake-git-storage.ts';
import { newUuid, type RepositoryId } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { TestClock } from '#test/support/test-clock.ts';

const clock = TestClock.standing();
const stays = new AbortController().signal;

/** Asks for slots one after the other. By number: the slot once it was given, undefined before. */
function requestSlots(slots: PushSlots, count: number, clientGone = stays): (PushSlot | undefined)[] {
  const given = Array.from({ length: count }, (): PushSlot | undefined => undefined);
  for (let i = 0; i < count; i++) void slots.acquire(clientGone).then((slot) => (given[i] = slot));
  return given;
}

const numbers = (given: readonly unknown[]): number[] => given.flatMap((slot, i) => (slot === undefined ? [] : i));

async function pass(milliseconds: number): Promise<void> {
  for (let passed = 0; passed < milliseconds; passed += 50) {
    await setImmediate();
    clock.advance(50);
  }
  await setImmediate();
}

/** A client that sends a byte whenever `send` is called. */
function createClient(): { input: AsyncIterable<Uint8Array>; send(): void } {
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

test('gives out as many slots as there are, and each that is released to the next push in line', async () => {
  const given = requestSlots(new PushSlots(2, clock), 5);
  await setImmediate();
  expect(numbers(given)).toEqual([0, 1]);
  given[1]?.release();
  given[1]?.release();
  await setImmediate();
  expect(numbers(given)).toEqual([0, 1, 2]);
  given[0]?.release();
  given[2]?.release();
  await setImmediate();
  expect(numbers(given)).toEqual([0, 1, 2, 3, 4]);
});

test('a push whose client sends nothing loses its slot to those that wait, one whose client sends keeps it', async () => {
  const slots = new PushSlots(2, clock);
  const [silent, busy] = await Promise.all([slots.acquire(stays), slots.acquire(stays)]);
  const [silentClient, busyClient] = [createClient(), createClient()];
  void silent.watch(silentClient.input)[Symbol.asyncIterator]().next();
  const reads = busy.watch(busyClient.input)[Symbol.asyncIterator]();
  const given = requestSlots(slots, 2);
  for (let i = 0; i < 3; i++) {
    const read = reads.next();
    await pass(100);
    busyClient.send();
    await read;
  }
  expect(numbers(given)).toEqual([0]);
});

test('a long push holds its slot for a second at most while others wait', async () => {
  const slots = new PushSlots(1, clock);
  await slots.acquire(stays);
  const given = requestSlots(slots, 1);
  await pass(950);
  expect(numbers(given)).toEqual([]);
  await pass(50);
  expect(numbers(given)).toEqual([0]);
});

test('every push is admitted after three seconds, however many wait before it', async () => {
  const slots = new PushSlots(1, clock);
  await slots.acquire(stays);
  const given = requestSlots(slots, 100);
  await pass(2950);
  expect(numbers(given).length).toBeLessThan(10);
  await pass(50);
  expect(numbers(given)).toHaveLength(100);
});

test('a push whose client disconnects leaves the queue at once and delays nobody', async () => {
  const slots = new PushSlots(1, clock);
  const first = await slots.acquire(stays);
  const leaves = new AbortController();
  const left = requestSlots(slots, 1, leaves.signal);
  const given = requestSlots(slots, 1);
  leaves.abort();
  await setImmediate();
  expect([left.length, numbers(left), numbers(given)]).toEqual([1, [0], []]);
  first.release();
  left[0]?.release();
  await setImmediate();
  expect(numbers(given)).toEqual([0]);
});

test('concurrent pushes get the list of refs a few at a time, and silent clients block nobody', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'paas-slots-'));
  const storage = createFakeGitStorage({ directory, log: createLog('error', () => undefined), threads: 2, clock });
  const gone = new AbortController();
  let listed = 0;
  const countLists = async (chunk: Uint8Array): Promise<void> => {
    if (Buffer.from(chunk).toString('latin1').endsWith('0000')) listed++;
  };
  const silent = async function* (): AsyncGenerator<Uint8Array> {
    while (!gone.signal.aborted) await new Promise((resolve) => gone.signal.addEventListener('abort', resolve, { once: true }));
    yield* [];
  };
  const served = Array.from({ length: 6 }, () =>
    storage.server.receivePack(
      { repositoryId: newUuid<RepositoryId>(), headRef: 'refs/heads/main' },
      { input: silent(), write: countLists, protocol: '', clientGone: gone.signal },
      async () => [],
    ),
  );
  try {
    await expect.poll(() => listed).toBe(2);
    await pass(50);
    expect(listed).toBe(2);
    await pass(150);
    expect(listed).toBe(4);
    await pass(200);
    expect(listed).toBe(6);
  } finally {
    gone.abort();
    await Promise.all(served);
    await storage.close();
    await rm(directory, { recursive: true });
  }
});
