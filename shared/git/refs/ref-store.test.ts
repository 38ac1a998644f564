import { Kysely, PostgresDialect } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Db, Tables } from '#shared/database/db.ts';
import type { RefChange } from '#shared/git/git-storage.ts';
import { createFakeRefs } from '#shared/git/refs/fake-refs.ts';
import { createPostgresRefs } from '#shared/git/refs/postgres-refs.ts';
import type { RefDriver } from '#shared/git/refs/ref-driver.ts';
import { newUuid, type ObjectId, type RepositoryId } from '#shared/ids.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';

const [one, two] = ['1', '2'].map((digit) => digit.repeat(40) as ObjectId) as [ObjectId, ObjectId];
const create = (name: string): RefChange => ({ name, oldOid: undefined, newOid: one });
const update = (name: string): RefChange => ({ name, oldOid: one, newOid: two });
const remove = (name: string): RefChange => ({ name, oldOid: one, newOid: undefined });

describe.each(['postgres', 'memory'] as const)('refs in %s', (kind) => {
  let database: TestDatabase;
  let db: Db;
  let refs: RefDriver;
  let statements = 0;
  beforeAll(async () => {
    database = await createTestDatabase();
    db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: database.pool }), log: () => void (statements += 1) });
    refs = kind === 'memory' ? createFakeRefs() : createPostgresRefs(db);
  });
  afterAll(() => database.close());

  const repositoryWith = async (...names: string[]): Promise<RepositoryId> => {
    const id = newUuid<RepositoryId>();
    await refs.compareAndSwap(db, id, names.map(create));
    return id;
  };
  const names = async (id: RepositoryId): Promise<string[]> => (await refs.listRefs(id)).map(({ name }) => name);

  it('change all together, or not at all', async () => {
    const id = await repositoryWith('refs/heads/a', 'refs/heads/b');
    expect(await refs.compareAndSwap(db, id, [remove('refs/heads/a'), create('refs/heads/b')])).toBe(false);
    expect(await names(id)).toEqual(['refs/heads/a', 'refs/heads/b']);
    expect(await refs.compareAndSwap(db, id, [remove('refs/heads/a'), update('refs/heads/b')])).toBe(true);
    expect(await refs.listRefs(id)).toEqual([{ name: 'refs/heads/b', oid: two }]);
  });

  it('change one by one, and report those that changed', async () => {
    const id = await repositoryWith('refs/heads/a', 'refs/heads/b', 'refs/heads/c');
    const stale = { name: 'refs/heads/b', oldOid: two, newOid: one };
    const gone = { name: 'refs/heads/d', oldOid: one, newOid: undefined };
    const moved = await refs.swapEach(db, id, [
      update('refs/heads/a'),
      stale,
      gone,
      remove('refs/heads/c'),
      create('refs/heads/e'),
    ]);
    expect([...moved]).toEqual(['refs/heads/a', 'refs/heads/c', 'refs/heads/e']);
    expect(await refs.listRefs(id)).toEqual([
      { name: 'refs/heads/a', oid: two },
      { name: 'refs/heads/b', oid: one },
      { name: 'refs/heads/e', oid: one },
    ]);
  });

  it.each([1, 6000])('are never a directory of another ref, with %d created at once', async (count) => {
    const others = Array.from({ length: count - 1 }, (_, i) => create(`refs/tags/${i}`));
    const id = await repositoryWith('refs/heads/a/b', 'refs/heads/c', 'refs/heads/e/f', 'refs/heads/e/g');
    for (const name of ['refs/heads/a', 'refs/heads/c/d', 'refs/heads/e'])
      expect(await refs.compareAndSwap(db, id, [create(name), ...others])).toBe(false);
    // A deleted ref makes room, and one that stays does not. A new ref conflicts with later ones.
    expect(await refs.compareAndSwap(db, id, [create('refs/heads/e'), remove('refs/heads/e/f'), ...others])).toBe(false);
    const changes = [create('refs/heads/a'), remove('refs/heads/a/b'), create('refs/heads/x'), create('refs/heads/x/y')];
    expect([...(await refs.swapEach(db, id, changes))]).toEqual(changes.slice(0, 3).map(({ name }) => name));
    expect(await names(id)).toEqual(['refs/heads/a', 'refs/heads/c', 'refs/heads/e/f', 'refs/heads/e/g', 'refs/heads/x']);
  });

  it('are listed by prefixes of their names, in byte order', async () => {
    const all = [
      'refs/heads/a',
      'refs/heads/a0',
      'refs/heads/é',
      'refs/heads/\u{1f600}',
      'refs/heads/\uffee',
      'refs/tags/a',
      'refs/tags/\u{10ffff}/x',
    ];
    const id = await repositoryWith(...all);
    const sorted = all.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect(await names(id)).toEqual(sorted);
    const questions = [
      ...[
        [''],
        ['r'],
        ['refs/'],
        ['refs/heads/a', 'refs/heads/'],
        ['refs/tags/', 'refs/heads/a'],
        ['refs/heads/\u00e9', 'refs/heads/\uffee'],
      ],
      ...[['refs/tags/\u{10ffff}'], ['refs/heads/a0', 'refs/heads/a'], ['HEAD', 'main', 'refs/x'], ['refs/heads/a\0'], []],
    ];
    for (const prefixes of questions) {
      const wanted = sorted.filter((name) => prefixes.some((prefix) => name.startsWith(prefix)));
      expect((await refs.listRefsBelow(id, prefixes)).map(({ name }) => name)).toEqual(wanted);
    }
  });

  it.runIf(kind === 'postgres')('take as many statements for thousands of changes as for one', async () => {
    const counted = async (count: number): Promise<number> => {
      const before = statements;
      const id = newUuid<RepositoryId>();
      const tags = Array.from({ length: count }, (_, i) => `refs/tags/${i}`);
      for (const change of [create, update]) expect((await refs.swapEach(db, id, tags.map(change))).size).toBe(count);
      expect((await refs.readRefs(id, tags)).size).toBe(count);
      expect(
        await refs.compareAndSwap(
          db,
          id,
          tags.map((name) => ({ name, oldOid: two, newOid: undefined })),
        ),
      ).toBe(true);
      return statements - before;
    };
    expect(await counted(10_000)).toBeLessThanOrEqual(await counted(1));
  });
});
