import { AppError } from '#shared/errors.ts';
import { parseJson } from '#shared/parse-json.ts';
import { readAtMost } from '#shared/read-at-most.ts';
import { parseGitUrl } from '#shared/sources/git-url.ts';
import { type GuardedRequest, type GuardedRequestOptions, guardedRequest } from '#shared/sources/guarded-request.ts';
import type { CommitStatus, GitHostTarget, PullRequestComment } from '#shared/sources/source-hosts.ts';

/** The REST APIs of GitHub, GitLab and Gitea (Forgejo has Gitea's), as far as they show what became of a commit. */

const mostBytes = 4 * 1024 * 1024;
/** Characters of a description that GitHub takes, which takes fewest. */
const longestDescription = 140;
const hint = ': the token may not do that. It needs the permission to write commit statuses and comments';

/** Sets the status of a commit. @throws AppError validation_failed when the host or the token does not allow it */
export async function setCommitStatus(status: CommitStatus, options: GuardedRequestOptions): Promise<void> {
  const { kind, api, repository } = baseOf(status);
  const { commit, context, targetUrl } = status;
  const description = status.description.slice(0, longestDescription);
  const target = targetUrl === undefined ? {} : { target_url: targetUrl };
  if (kind === 'gitlab') {
    const states = { pending: 'running', success: 'success', failure: 'failed', error: 'canceled' } as const;
    const body = { state: states[status.state], name: context, description, ...target };
    await call(status, `${api}/projects/${repository}/statuses/${commit}`, { method: 'POST', body }, options);
    return;
  }
  const body = { state: status.state, context, description, ...target };
  await call(status, `${api}/repos/${repository}/statuses/${commit}`, { method: 'POST', body }, options);
}

/**
 * Writes a comment to each open pull request of a branch, or replaces the one that has the marker.
 * @returns how many pull requests there are
 * @throws AppError validation_failed when the host or the token does not allow it
 */
export async function commentOnPullRequests(comment: PullRequestComment, options: GuardedRequestOptions): Promise<number> {
  const { branch, marker, text } = comment;
  const { kind, api, repository } = baseOf(comment);
  const body = { body: `${marker}\n${text}` };
  const get = async (url: string): Promise<readonly Json[]> => {
    const found = await call(comment, url, { method: 'GET' }, options);
    return Array.isArray(found) ? (found as Json[]) : [];
  };
  const write = (method: 'POST' | 'PATCH' | 'PUT', url: string) => call(comment, url, { method, body }, options);
  const isOurs = (each: Json): boolean => typeof each['body'] === 'string' && each['body'].startsWith(marker);

  if (kind === 'gitlab') {
    const requests = `${api}/projects/${repository}/merge_requests`;
    const open = await get(`${requests}?state=opened&source_branch=${encodeURIComponent(branch)}`);
    for (const { iid } of open) {
      const notes = `${requests}/${String(iid)}/notes`;
      const ours = (await get(`${notes}?per_page=100`)).find(isOurs);
      await (ours === undefined ? write('POST', notes) : write('PUT', `${notes}/${String(ours['id'])}`));
    }
    return open.length;
  }
  const [owner = ''] = repository.split('/');
  const pulls = `${api}/repos/${repository}/pulls?state=open&limit=50`;
  const listed = await get(kind === 'github' ? `${pulls}&head=${owner}:${encodeURIComponent(branch)}` : pulls);
  const open = listed.filter(({ head }) => isHead(head, branch, repository));
  for (const { number } of open) {
    const comments = `${api}/repos/${repository}/issues/${String(number)}/comments`;
    const ours = (await get(`${comments}?per_page=100`)).find(isOurs);
    await (ours === undefined
      ? write('POST', comments)
      : write('PATCH', `${api}/repos/${repository}/issues/comments/${String(ours['id'])}`));
  }
  return open.length;
}

type Json = Readonly<Record<string, unknown>>;

/** Of the repository itself: a fork may have a branch of the same name. */
function isHead(head: unknown, branch: string, repository: string): boolean {
  const { ref, repo } = (head ?? {}) as { ref?: unknown; repo?: { full_name?: unknown } | null };
  return ref === branch && String(repo?.full_name).toLowerCase() === repository.toLowerCase();
}

function baseOf({ url, kind }: GitHostTarget): { kind: GitHostTarget['kind']; api: string; repository: string } {
  const parsed = parseGitUrl(url);
  if (parsed === undefined || parsed.scheme === 'ssh')
    throw new AppError('validation_failed', 'Only repositories with an https address have an API.');
  const { origin } = new URL(url);
  if (kind === 'gitlab') return { kind, api: `${origin}/api/v4`, repository: encodeURIComponent(parsed.path) };
  if (kind === 'gitea') return { kind, api: `${origin}/api/v1`, repository: parsed.path };
  return { kind, api: origin === 'https://github.com' ? 'https://api.github.com' : `${origin}/api/v3`, repository: parsed.path };
}

async function call(
  { token, signal }: GitHostTarget,
  address: string,
  { method, body }: { method: GuardedRequest['method']; body?: Json },
  options: GuardedRequestOptions,
): Promise<unknown> {
  const url = new URL(address);
  const request: GuardedRequest = {
    method,
    headers: { 'user-agent': 'paas', accept: 'application/json', 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: new TextEncoder().encode(JSON.stringify(body)) }),
    credentials: { origin: url.origin, headers: { authorization: `Bearer ${token.value}` } },
    accepts: [200, 201],
    hint,
    signal,
  };
  const response = await guardedRequest(url, request, options);
  const bytes = await readAtMost(response.body, mostBytes);
  if (bytes === undefined) throw new AppError('validation_failed', `The answer of ${url.host} is too long.`);
  const answer = parseJson(bytes.toString());
  if (answer === undefined) throw new AppError('validation_failed', `${url.host} has no API that answers with JSON.`);
  return answer;
}
