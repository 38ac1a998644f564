import { GitFault } from '#shared/git/git-fault.ts';
import type { ObjectFilter } from '#shared/git/object-graph/object-filter.ts';
import type { Deepen } from '#shared/git/object-graph/shallow.ts';
import { isObjectType } from '#shared/git/objects/object-type.ts';
import type { ObjectId } from '#shared/ids.ts';

/** What a client asks for in a fetch, in either version of the protocol. */
export interface FetchRequest {
  wants: ObjectId[];
  haves: ObjectId[];
  /** Commits at which the client's history ends now. */
  shallow: ObjectId[];
  deepen: Deepen | undefined;
  filter: ObjectFilter;
  /** The pack may base deltas on objects that the client has. */
  thin: boolean;
  /** The client understands deltas that name their base by its distance. */
  offsetDeltas: boolean;
  /** Annotated tags are sent along with the objects they point at. */
  includeTags: boolean;
  /** The negotiation is over. */
  done: boolean;
  /** The negotiation goes on until the client ends it. */
  waitForDone: boolean;
}

/** Wants, haves and shallow commits of one request together. */
const mostLines = 200_000;
const mostExcluded = 100;
const mostFilters = 100;

/** A request that asks for nothing yet. */
export function emptyFetchRequest(): FetchRequest {
  return {
    wants: [],
    haves: [],
    shallow: [],
    deepen: undefined,
    filter: { kind: 'none' },
    thin: false,
    offsetDeltas: false,
    includeTags: false,
    done: false,
    waitForDone: false,
  };
}

/** Adds one line of the protocol to the request. @throws GitFault when the line is not valid */
export function addFetchLine(request: FetchRequest, line: string): void {
  const space = line.indexOf(' ');
  const word = space < 0 ? line : line.slice(0, space);
  const value = space < 0 ? '' : line.slice(space + 1);
  switch (word) {
    case 'want':
      return add(request, request.wants, value);
    case 'have':
      return add(request, request.haves, value);
    case 'shallow':
      return add(request, request.shallow, value);
    case 'deepen':
      request.deepen = {
        kind: 'depth',
        depth: count(value, 'depth'),
        relative: request.deepen?.kind === 'depth' && request.deepen.relative,
      };
      return;
    case 'deepen-relative':
      request.deepen = { kind: 'depth', depth: request.deepen?.kind === 'depth' ? request.deepen.depth : 0, relative: true };
      return;
    case 'deepen-since':
      request.deepen = { kind: 'since', seconds: count(value, 'date') };
      return;
    case 'deepen-not':
      return exclude(request, value);
    case 'filter':
      request.filter = parseFilter(value);
      return;
    case 'thin-pack':
      request.thin = true;
      return;
    case 'ofs-delta':
      request.offsetDeltas = true;
      return;
    case 'include-tag':
      request.includeTags = true;
      return;
    case 'no-progress':
      return;
    case 'done':
      request.done = true;
      return;
    case 'wait-for-done':
      request.waitForDone = true;
      return;
    default:
      throw new GitFault(`unknown line in the fetch request: '${line.slice(0, 100)}'`);
  }
}

function add(request: FetchRequest, list: ObjectId[], value: string): void {
  if (!/^[0-9a-f]{40}$/.test(value)) throw new GitFault('the fetch names an object by an invalid id');
  if (request.wants.length + request.haves.length + request.shallow.length >= mostLines)
    throw new GitFault('the fetch names too many objects');
  list.push(value as ObjectId);
}

function exclude(request: FetchRequest, ref: string): void {
  if (request.deepen?.kind !== 'not') request.deepen = { kind: 'not', refs: [] };
  if (request.deepen.refs.length >= mostExcluded) throw new GitFault('the fetch excludes too many refs');
  request.deepen.refs.push(ref);
}

function count(value: string, what: string): number {
  if (!/^\d{1,15}$/.test(value)) throw new GitFault(`the fetch has an invalid ${what}`);
  return Number(value);
}

/** git sends several filters as one `combine:`, each of them percent-encoded. */
function parseFilter(value: string): ObjectFilter {
  if (!value.startsWith('combine:')) return parseSimpleFilter(value);
  const parts = value.slice('combine:'.length).split('+');
  if (parts.length > mostFilters) throw new GitFault('the fetch combines too many filters');
  return { kind: 'all-of', filters: parts.map((part) => parseSimpleFilter(decodePart(part))) };
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new GitFault('a filter of the fetch is not percent-encoded');
  }
}

function parseSimpleFilter(value: string): ObjectFilter {
  if (value === 'blob:none') return { kind: 'blob-limit', bytes: 0 };
  const type = value.startsWith('object:type=') ? value.slice('object:type='.length) : undefined;
  if (type !== undefined && isObjectType(type)) return { kind: 'type', type };
  const [, kind, digits = '', unit = ''] = /^(blob:limit|tree)[=:](\d{1,12})([kmg]?)$/.exec(value) ?? [];
  if (kind === 'tree' && unit === '') return { kind: 'tree-depth', depth: Number(digits) };
  if (kind === 'blob:limit') return { kind: 'blob-limit', bytes: Number(digits) * 1024 ** ['', 'k', 'm', 'g'].indexOf(unit) };
  throw new GitFault(
    `unknown filter '${value.slice(0, 100)}'; use blob:none, blob:limit=<n>, tree:<depth> or object:type=<type>`,
  );
}
