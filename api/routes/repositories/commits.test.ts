import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ObjectId } from '#shared/ids.ts';
import { seedCommit } from '#test/support/api/seed-commit.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
let base: ObjectId;
let head: ObjectId;
let app: string;
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
  app = (await test.createApp(ada)).id;
  base = await seedCommit(test, app, { 'a.txt': 'one\n', gone: 'x' });
  head = await seedCommit(test, app, { 'a.txt': 'two\n', binary: Buffer.of(0xff, 0), bom: '\uFEFFtext' }, base);
});
afterAll(() => test?.close());

const get = (path: string) => test.ask('GET', `/v1/apps/${app}/${path}`, { as: ada });

describe('commits', () => {
  it('are read by branch and by id', async () => {
    for (const revision of ['main', 'refs%2Fheads%2Fmain', head]) {
      const { status, body } = await get(`commits/${revision}`);
      expect([status, body.data]).toMatchObject([
        200,
        {
          oid: head,
          parents: [base],
          message: 'message\n',
          author: { name: 'A', email: 'a@example.com', at: '2023-11-14T22:13:20.000Z', utc_offset_minutes: 0 },
        },
      ]);
    }
  });

  it('are compared', async () => {
    const { body } = await get(`compare/${base}...main`);
    expect(body.data).toMatchObject({
      commits: [{ oid: head }],
      files: [
        { path: 'a.txt', change: 'modified' },
        { path: 'binary', change: 'added' },
        { path: 'bom', change: 'added' },
        { path: 'gone', change: 'deleted' },
      ],
      is_complete: true,
    });
  });

  it.each([
    'commits/none',
    `commits/${'4'.repeat(40)}`,
    'commits/a%00b',
    'commits/a%20b',
    'tree/none',
    'tree/main?path=none',
    'compare/main',
    'compare/main...',
    'compare/main...none',
  ])('that do not exist are 404: %s', async (path) => {
    expect((await get(path)).status).toBe(404);
  });
});

describe('the files of a commit', () => {
  it('are listed and read, as text or in base64', async () => {
    const { body } = await get('tree/main');
    expect(body.data).toMatchObject({ path: '', commit: head, kind: 'directory', size: null, content: null });
    expect(body.data).toMatchObject({ entries: [{ name: 'a.txt' }, { name: 'binary' }, { name: 'bom' }] });
    expect((await get('tree/main?path=%00')).status).toBe(422);
    const read = async (path: string) => (await get(`tree/main?path=${path}`)).body.data;
    expect(await read('a.txt')).toMatchObject({ kind: 'file', size: 4, encoding: 'utf-8', content: 'two\n', entries: null });
    expect(await read('binary')).toMatchObject({ size: 2, encoding: 'base64', content: '/wA=' });
    expect(await read('bom')).toMatchObject({ encoding: 'utf-8', content: '\uFEFFtext' });
    expect((await get(`tree/${base}?path=a.txt`)).body.data).toMatchObject({ content: 'one\n', commit: base });
  });
});
