import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ObjectId } from '#shared/ids.ts';
import { createOutsideSourceHosts } from '#shared/sources/outside-source-hosts.ts';
import type { GitHostTarget } from '#shared/sources/source-hosts.ts';

/** The relevant answers of the three APIs, by `METHOD path`. */
let answers: Record<string, unknown>;
let asked: { request: string; authorization: string | undefined; body: unknown }[];
let server: Server;
let origin: string;
beforeAll(async () => {
  server = createServer(async (request, response) => {
    const name = `${request.method} ${request.url}`;
    const body = request.method === 'GET' ? undefined : await json(request);
    asked.push({ request: name, authorization: request.headers.authorization, body });
    const answer = answers[name];
    response.writeHead(answer === undefined ? 403 : request.method === 'POST' ? 201 : 200).end(JSON.stringify(answer ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());
beforeEach(() => {
  [answers, asked] = [{}, []];
});

const hosts = createOutsideSourceHosts({ allowPrivate: true, seconds: 20 });
const commit = 'a'.repeat(40) as ObjectId;
const targetOf = (kind: GitHostTarget['kind']): GitHostTarget => ({
  url: `${origin}/ada/hello.git`,
  kind,
  token: { user: 'ada', value: 'secret-token' },
  signal: new AbortController().signal,
});
const requests = () => asked.map(({ request }) => request);

describe('the status of a commit', () => {
  const status = {
    commit,
    state: 'failure',
    context: 'paas/hello',
    description: 'x'.repeat(200),
    targetUrl: 'http://a/',
  } as const;

  it.each([
    [
      'github',
      `/api/v3/repos/ada/hello/statuses/${commit}`,
      { state: 'failure', context: 'paas/hello', target_url: 'http://a/' },
    ],
    ['gitea', `/api/v1/repos/ada/hello/statuses/${commit}`, { state: 'failure', context: 'paas/hello', target_url: 'http://a/' }],
    [
      'gitlab',
      `/api/v4/projects/ada%2Fhello/statuses/${commit}`,
      { state: 'failed', name: 'paas/hello', target_url: 'http://a/' },
    ],
  ] as const)('is set at %s with the token', async (kind, path, body) => {
    answers[`POST ${path}`] = { id: 1 };
    await hosts.setCommitStatus({ ...targetOf(kind), ...status });
    expect(asked).toEqual([
      {
        request: `POST ${path}`,
        authorization: 'Bearer secret-token',
        body: { ...body, description: 'x'.repeat(140) },
      },
    ]);
  });

  it('that the token may not set is refused with what it lacks', async () => {
    await expect(hosts.setCommitStatus({ ...targetOf('gitea'), ...status })).rejects.toMatchObject({
      code: 'validation_failed',
      message: expect.stringMatching(/answered 403.*permission to write commit statuses/),
    });
  });
});

describe('a comment', () => {
  const comment = { branch: 'feature', marker: '<!-- paas preview 1 -->', text: 'It is live.' };
  const pulls = [
    { number: 3, head: { ref: 'feature', repo: { full_name: 'ada/hello' } } },
    { number: 4, head: { ref: 'feature', repo: { full_name: 'eve/hello' } } },
    { number: 5, head: { ref: 'other', repo: { full_name: 'ada/hello' } } },
  ];
  const body = { body: '<!-- paas preview 1 -->\nIt is live.' };

  it.each([
    ['github', '/api/v3/repos/ada/hello', '&head=ada:feature'],
    ['gitea', '/api/v1/repos/ada/hello', ''],
  ] as const)('is written to the pull requests of the branch at %s, not to those of forks', async (kind, base, query) => {
    answers = {
      [`GET ${base}/pulls?state=open&limit=50${query}`]: pulls,
      [`GET ${base}/issues/3/comments?per_page=100`]: [{ id: 9, body: 'Somebody quotes <!-- paas preview 1 -->' }],
      [`POST ${base}/issues/3/comments`]: {},
    };
    expect(await hosts.commentOnPullRequests({ ...targetOf(kind), ...comment })).toBe(1);
    expect(asked.at(-1)).toMatchObject({ request: `POST ${base}/issues/3/comments`, body });
  });

  it('replaces the one before', async () => {
    const base = '/api/v1/repos/ada/hello';
    answers = {
      [`GET ${base}/pulls?state=open&limit=50`]: pulls,
      [`GET ${base}/issues/3/comments?per_page=100`]: [{ id: 9, body: '<!-- paas preview 1 -->\nIt was live.' }],
      [`PATCH ${base}/issues/comments/9`]: {},
    };
    await hosts.commentOnPullRequests({ ...targetOf('gitea'), ...comment });
    expect(requests().at(-1)).toBe(`PATCH ${base}/issues/comments/9`);
  });

  it('is a note of a merge request at GitLab', async () => {
    const base = '/api/v4/projects/ada%2Fhello/merge_requests';
    answers = {
      [`GET ${base}?state=opened&source_branch=feature`]: [{ iid: 7 }, { iid: 8 }],
      [`GET ${base}/7/notes?per_page=100`]: [],
      [`GET ${base}/8/notes?per_page=100`]: [{ id: 1, body: body.body }],
      [`POST ${base}/7/notes`]: {},
      [`PUT ${base}/8/notes/1`]: {},
    };
    expect(await hosts.commentOnPullRequests({ ...targetOf('gitlab'), ...comment })).toBe(2);
    expect(requests().filter((each) => !each.startsWith('GET'))).toEqual([`POST ${base}/7/notes`, `PUT ${base}/8/notes/1`]);
  });
});
