import { createHmac } from 'node:crypto';
import type { ObjectId } from '#shared/ids.ts';
import { parseGitUrl } from '#shared/sources/git-url.ts';
import { SourceUnavailable } from '#shared/sources/source-unavailable.ts';
import { type Answer, type TestApi, type TestUser, testWebhookSecret } from '#test/support/api/test-api.ts';

export const webhookPath = '/v1/webhooks/githost';
/** The id that stands for "does not exist". */
export const nothing = '0'.repeat(40);
let counter = 0;

/** An id of a commit that no other call gives. */
export function commit(): string {
  counter += 1;
  return counter.toString(16).padStart(40, 'a');
}

/** @returns X-Hub-Signature-256 */
export function sign(body: string | Uint8Array, secret = testWebhookSecret): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}

/** The relevant part of GitHub's push payload. */
export function push(repository: string, change: { ref?: string; before?: string; after?: string; deleted?: boolean } = {}) {
  const html_url = `https://git.example.com/${repository}`;
  return {
    ref: 'refs/heads/main',
    before: nothing,
    after: commit(),
    deleted: false,
    repository: {
      name: repository,
      html_url,
      url: html_url,
      clone_url: `${html_url}.git`,
      ssh_url: `git@git.example.com:${repository}.git`,
      git_url: `git://git.example.com/${repository}.git`,
      homepage: null,
    },
    pusher: { name: 'ada' },
    ...change,
  };
}

export type GitHostFixture = ReturnType<typeof createGitHost>;

/** A git host at git.example.com, and its deliveries to the API. It answers for the repositories in `repositories` only. */
export function createGitHost(test: TestApi) {
  /** Commits by branch, by path of the repository. */
  const repositories = new Map<string, Map<string, string>>();
  test.context.sources.listTips = async ({ url }) => {
    const branches = repositories.get(parseGitUrl(url)?.path ?? '');
    if (branches === undefined) throw new SourceUnavailable('git.example.com could not be reached (ECONNREFUSED).');
    return { branches: new Map(branches) as Map<string, ObjectId>, defaultBranch: 'main' };
  };

  /** Pushes to the git host, which then has it. */
  function pushTo(repository: string, branch: string, after = commit()) {
    const branches = repositories.getOrInsertComputed(repository, () => new Map<string, string>());
    const before = branches.get(branch) ?? nothing;
    if (after === nothing) branches.delete(branch);
    else branches.set(branch, after);
    return push(repository, { ref: `refs/heads/${branch}`, before, after, deleted: after === nothing });
  }

  function deliver(
    payload: unknown,
    headers: Record<string, string> = {},
    secret = testWebhookSecret,
    query = '',
  ): Promise<Answer> {
    const body = typeof payload === 'string' ? payload : JSON.stringify(payload);
    return test.ask('POST', webhookPath + query, {
      body,
      headers: {
        'content-type': 'application/json',
        'x-github-event': 'push',
        'x-github-delivery': crypto.randomUUID(),
        'x-hub-signature-256': sign(body, secret),
        ...headers,
      },
    });
  }

  /** An app that follows a repository. */
  async function createFollower(user: TestUser, url: string, branch = 'main') {
    const app = await test.createApp(user);
    await test.ask('PUT', `/v1/apps/${app.id}/git`, { as: user, json: { url, branch } });
    return app;
  }

  async function readBuilds(user: TestUser, app: string) {
    return (await test.ask('GET', `/v1/apps/${app}/builds`, { as: user })).body.data;
  }

  return { repositories, pushTo, deliver, createFollower, readBuilds };
}
