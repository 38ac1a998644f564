import type { BranchHint } from '#shared/core/webhooks/source-moves.ts';
import { AppError } from '#shared/errors.ts';
import { parseJson } from '#shared/parse-json.ts';
import { parseGitUrl, spellingsOf } from '#shared/sources/git-url.ts';

/** A change of a branch that a git host reported. */
export interface PushEvent extends BranchHint {
  kind: 'push';
  /** Every way an app may have written the repository's address. */
  spellings: readonly string[];
}

/** Nothing that starts anything; why, for the person who reads the git host's delivery log. */
export interface OtherEvent {
  kind: 'other';
  reason: string;
  /** Of a pull request: its branch, whose preview is told there. */
  pullRequest?: { branch: string; spellings: readonly string[] };
}

const objectPattern = /^[0-9a-f]{40}$|^[0-9a-f]{64}$/;
const pullRequestEvents = /^(pull_request|merge request hook)$/i;
const pushEvents = /^(push|push hook|system hook|repo:push)$/i;
const branchPrefix = 'refs/heads/';
/** As GitHub, GitLab and Gitea read it. */
const skipPattern = /\[(skip ci|ci skip|no ci|skip actions|actions skip)\]/i;

type Json = Readonly<Record<string, unknown>>;

/**
 * Reads the payload of GitHub, Gitea, Forgejo, GitLab or what is shaped like theirs.
 * @param event as the provider named it by header, '' when it did not
 * @throws AppError validation_failed when it is no JSON object, or a push that does not say what was pushed
 */
export function readEvent(body: Uint8Array, contentType: string, event: string): PushEvent | OtherEvent {
  const payload = parsePayload(body, contentType);
  // Gitea reports the deletion of a branch by this event only.
  const isDeletion = /^delete$/i.test(event) && payload['ref_type'] === 'branch';
  if (pullRequestEvents.test(event)) return readPullRequest(payload);
  const isPush =
    event === '' ? typeof payload['ref'] === 'string' && typeof payload['after'] === 'string' : pushEvents.test(event);
  if (!isPush && !isDeletion)
    return other(
      event === ''
        ? 'This delivery is not a push.'
        : `The event ${event.slice(0, 60)} starts no build. Let the git host deliver pushes, deletions of branches and pull requests only.`,
    );
  if (/^system hook$/i.test(event) && payload['event_name'] !== 'push')
    return other('Of the system hooks, only pushes start a build.');

  const hint = isDeletion ? readDeletion(payload) : readPush(payload);
  if (typeof hint === 'string') return other(hint);
  const spellings = readSpellings(payload);
  if (spellings.length === 0) throw new AppError('validation_failed', 'The push does not say of which repository it is.');
  return { kind: 'push', ...hint, spellings };
}

/** GitHub and Gitea have a `pull_request` with its head, GitLab has `object_attributes`. */
function readPullRequest(payload: Json): OtherEvent {
  const request = isObject(payload['pull_request']) ? payload['pull_request'] : {};
  const head = isObject(request['head']) ? request['head'] : {};
  const merge = isObject(payload['object_attributes']) ? payload['object_attributes'] : {};
  const branch = head['ref'] ?? merge['source_branch'];
  const reason = 'A pull request starts no build. The preview of its branch is shown in it.';
  if (typeof branch !== 'string') return other(reason);
  return { ...other(reason), pullRequest: { branch, spellings: readSpellings(payload) } };
}

function readSpellings(payload: Json): string[] {
  const spellings = repositoryUrls(payload).flatMap((text) => {
    const url = parseGitUrl(text);
    return url === undefined ? [] : spellingsOf(url);
  });
  return [...new Set(spellings)];
}

function readDeletion({ ref }: Json): BranchHint {
  if (typeof ref !== 'string')
    throw new AppError('validation_failed', 'The delivery does not say what was deleted: `ref` is required.');
  return { branch: ref.replace(branchPrefix, ''), commit: null, skipsBuild: false };
}

/** @returns why it changes no branch, where it does not */
function readPush(payload: Json): BranchHint | string {
  const [ref, before, after] = ['ref', 'before', 'after'].map((name) => payload[name]);
  if (typeof ref !== 'string' || typeof before !== 'string' || typeof after !== 'string')
    throw new AppError('validation_failed', 'The push does not say what it moved: `ref`, `before` and `after` are required.');
  if (!objectPattern.test(before) || !objectPattern.test(after))
    throw new AppError('validation_failed', '`before` and `after` must be ids of commits, 40 hex digits.');
  if (!ref.startsWith(branchPrefix)) return `${ref.slice(0, 200)} is not a branch. Only pushes to branches start a build.`;
  const deleted = /^0+$/.test(after) || payload['deleted'] === true;
  if (!deleted && after.length === 64) return 'Repositories with SHA-256 ids are not supported.';
  return {
    branch: ref.slice(branchPrefix.length),
    commit: deleted ? null : after,
    skipsBuild: skipPattern.test(messageOf(payload, after)),
  };
}

/** The message of the commit that was pushed last; '' where the payload has none. */
function messageOf({ head_commit, commits }: Json, after: string): string {
  const pushed = [head_commit, ...(Array.isArray(commits) ? (commits as unknown[]) : [])].filter(isObject);
  const message = pushed.find(({ id }) => id === after)?.['message'];
  return typeof message === 'string' ? message : '';
}

function other(reason: string): OtherEvent {
  return { kind: 'other', reason };
}

/** JSON, or a form whose field `payload` holds it. */
function parsePayload(body: Uint8Array, contentType: string): Json {
  const text = new TextDecoder().decode(body);
  const isForm = contentType.toLowerCase().startsWith('application/x-www-form-urlencoded');
  const payload = parseJson(isForm ? (new URLSearchParams(text).get('payload') ?? '') : text);
  if (isObject(payload)) return payload;
  throw new AppError('validation_failed', 'The delivery must be a JSON object, as it is or in the form field `payload`.');
}

/** Not `homepage`: anybody may write anything there. */
const urlFields = ['clone_url', 'ssh_url', 'html_url', 'url', 'git_http_url', 'git_ssh_url', 'http_url', 'web_url'];
const mostUrls = 12;

function repositoryUrls(payload: Json): string[] {
  const places = [payload['repository'], payload['project']].filter(isObject);
  const urls = places.flatMap((place) => urlFields.map((name) => place[name]));
  return [...new Set(urls.filter((url) => typeof url === 'string' && url.length <= 2000))].slice(0, mostUrls) as string[];
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
