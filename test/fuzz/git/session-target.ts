import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Db } from '#shared/database/db.ts';
import { encodePacket, flushPacket } from '#shared/git/protocol/pkt-line.ts';
import { createFakeGitStorage } from '#shared/git/storage/fake-git-storage.ts';
import { cut, streamed } from '#shared/git/testing/mutation.ts';
import { commitOf, objectId, PackBuilder, treeEntry } from '#shared/git/testing/pack-builder.ts';
import { newUuid, type RepositoryId } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import type { FuzzTarget } from '#test/fuzz/git/engine.ts';
import { createRandom } from '#test/support/random.ts';

/** The fake takes part in no transaction. */
const noDatabase = { isTransaction: false } as Db;

/** Whole sessions with worker threads and quarantine. Refs may move only when the report says so, and no files may be left. */
export async function createSessionTargets(
  directory: string,
): Promise<{ targets: readonly FuzzTarget[]; close(): Promise<void> }> {
  const place = await mkdtemp(join(directory, 'sessions-'));
  const problems: string[] = [];
  const storage = createFakeGitStorage({ directory: place, log: createLog('warn', (line) => problems.push(line)), threads: 1 });
  const id = newUuid<RepositoryId>();
  const repository = { repositoryId: id, headRef: 'refs/heads/main' };
  const builder = new PackBuilder();
  const tip = builder.add('commit', commitOf(builder.add('tree', treeEntry('100644', 'a', builder.add('blob', 'x')))));
  const none = '0'.repeat(40);
  const push = Buffer.concat([
    encodePacket(`${none} ${tip} refs/heads/main\0report-status side-band-64k atomic push-options`),
    flushPacket,
    encodePacket('detach'),
    flushPacket,
    builder.build(),
  ]);

  async function serve(service: 'push' | 'fetch', protocol: string, input: Buffer): Promise<string> {
    const written: Buffer[] = [];
    const stream = {
      input: streamed(cut(input, createRandom(input.length))),
      write: async (chunk: Uint8Array) => {
        written.push(Buffer.from(chunk));
      },
      protocol,
      clientGone: new AbortController().signal,
    };
    if (service === 'fetch') await storage.server.uploadPack(repository, stream);
    else
      await storage.server.receivePack(repository, stream, async ({ commands, pack, atomic }) => {
        await pack?.admit(noDatabase);
        const moved = new Map<string, boolean>();
        for (const group of atomic ? [commands] : commands.map((command) => [command])) {
          const done = await storage.refs.compareAndSwap(noDatabase, id, group);
          for (const { name } of group) moved.set(name, done);
        }
        return commands.map(({ name }) =>
          moved.get(name) === true ? { name, status: 'ok' } : { name, status: 'rejected', reason: 'raced' },
        );
      });
    if (problems.length > 0) throw new Error(problems.splice(0).join('\n'));
    return Buffer.concat(written).toString('latin1');
  }

  const request = (...packets: readonly (string | Buffer)[]): Buffer =>
    Buffer.concat(packets.map((packet) => (typeof packet === 'string' ? encodePacket(packet) : packet)));
  const delimiter = Buffer.from('0001');
  const words = ['0000', '0001', 'want ', 'have ', 'deepen 1', 'filter tree:0', 'done', none, tip];
  const common = { batch: 50, share: 0.5, words: words.map((word) => Buffer.from(word)) };
  await serve('push', '', push);
  const fetches: readonly [protocol: string, seeds: Buffer[]][] = [
    ['', [request(`want ${tip} ofs-delta side-band-64k`, 'deepen 1', flushPacket, `have ${objectId('blob', 'y')}`, 'done')]],
    [
      'version=2',
      [
        request('command=ls-refs', delimiter, 'peel', 'symrefs', 'ref-prefix refs/heads/', flushPacket),
        request('command=fetch', 'object-format=sha1', delimiter, `want ${tip}`, 'ofs-delta', 'done', flushPacket),
      ],
    ],
  ];
  return {
    targets: [
      {
        ...common,
        name: 'push-session',
        seeds: [push, Buffer.concat([encodePacket(`${tip} ${none} refs/heads/main\0report-status`), flushPacket])],
        async run(input) {
          const before = await storage.refs.listRefs(id);
          const answer = await serve('push', '', input);
          const after = await storage.refs.listRefs(id);
          const isReported = /ok refs\//.test(answer) || !answer.includes('unpack ');
          if (!isReported && JSON.stringify(before) !== JSON.stringify(after))
            throw new Error('refs moved in a push that was rejected');
          const left = await readdir(join(place, id, 'quarantine')).catch(() => []);
          if (left.length > 0) throw new Error('a push left files in quarantine');
        },
      },
      ...fetches.map(
        ([protocol, seeds]): FuzzTarget => ({
          ...common,
          name: protocol === '' ? 'fetch-session-v0' : 'fetch-session-v2',
          seeds,
          run: async (input) => void (await serve('fetch', protocol, input)),
        }),
      ),
    ],
    async close() {
      await storage.close();
      await rm(place, { recursive: true, force: true });
    },
  };
}
