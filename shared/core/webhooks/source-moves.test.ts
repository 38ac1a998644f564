import { describe, expect, it } from 'vitest';
import { type BranchHint, planSourceMoves } from '#shared/core/webhooks/source-moves.ts';
import type { ObjectId } from '#shared/ids.ts';

const tips = (commits: Record<string, string>) => new Map(Object.entries(commits)) as Map<string, ObjectId>;
const hint = (branch: string, commit: string | null, skipsBuild = false): BranchHint => ({ branch, commit, skipsBuild });

/** Branches to build with a mark for those that were named, branches that are gone, and whether the host is behind. */
function plan(now: Record<string, string>, before: Record<string, string> | undefined, ...hints: BranchHint[]) {
  const moves = planSourceMoves({ tips: tips(now), seen: before && tips(before), hints });
  return [
    moves.build.map(({ branch, commit, hinted }) => `${branch}@${commit}${hinted ? '!' : ''}`).join(' '),
    moves.gone.join(' '),
    [...moves.unchanged.keys()].join(' '),
    moves.isBehind,
  ];
}

describe('the plan after an answer of the git host', () => {
  it.each([
    ['nothing at the first answer without a delivery', plan({ main: 'a' }, undefined), ['', '', '', false]],
    [
      'a named branch at the first answer, no others',
      plan({ main: 'a', x: 'b' }, undefined, hint('main', 'a')),
      ['main@a!', '', '', false],
    ],
    [
      'what differs from the answer before',
      plan({ main: 'b', x: 'c', y: 'd' }, { main: 'a', y: 'd' }),
      ['main@b x@c', '', '', false],
    ],
    [
      'the commit of the host, not of the delivery',
      plan({ main: 'b' }, { main: 'b' }, hint('main', 'a')),
      ['main@b!', '', '', true],
    ],
    [
      'no build of a commit whose message forbids it',
      plan({ main: 'b' }, { main: 'a' }, hint('main', 'b', true)),
      ['', '', 'main', false],
    ],
    [
      'a build of the commit after one that forbids it',
      plan({ main: 'c' }, { main: 'a' }, hint('main', 'b', true)),
      ['main@c!', '', '', true],
    ],
    ['a branch that is gone since the answer before', plan({}, { x: 'a' }), ['', 'x', '', false]],
    ['a branch that is gone as the delivery says', plan({}, undefined, hint('x', null)), ['', 'x', '', false]],
    ['no removal while the host has the branch', plan({ x: 'a' }, { x: 'a' }, hint('x', null)), ['', '', 'x', false]],
    ['nothing for a branch that the host never had', plan({}, undefined, hint('x', 'a')), ['', '', 'x', true]],
    ['the last of several deliveries', plan({ x: 'b' }, { x: 'a' }, hint('x', null), hint('x', 'b')), ['x@b!', '', '', false]],
  ])('is %s', (_what, planned, expected) => {
    expect(planned).toEqual(expected);
  });
});
