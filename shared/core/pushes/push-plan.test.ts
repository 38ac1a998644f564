import { describe, expect, it } from 'vitest';
import { planPush } from '#shared/core/pushes/push-plan.ts';
import type { RefChange } from '#shared/git/git-storage.ts';
import type { ObjectId } from '#shared/ids.ts';

const oid = 'a'.repeat(40) as ObjectId;

function update(name: string): RefChange {
  return { name, oldOid: undefined, newOid: oid };
}

function remove(name: string): RefChange {
  return { name, oldOid: oid, newOid: undefined };
}

function actions(...commands: RefChange[]): string[] {
  return planPush(commands, 'main').commands.map((planned) => planned.action);
}

describe('planPush', () => {
  it('builds the deploy branch and previews of others, and stores the rest', () => {
    expect(actions(update('refs/heads/main'), update('refs/heads/feature/x'), update('refs/tags/v1'))).toEqual([
      'build',
      'build',
      'store',
    ]);
  });

  it('removes the preview of a deleted branch, and refuses to delete the deploy branch', () => {
    expect(actions(remove('refs/heads/feature'), remove('refs/heads/main'), remove('refs/tags/v1'))).toEqual([
      'delete-branch',
      'refuse',
      'store',
    ]);
  });

  it('does not start an environment for each branch of a big push, and says so', () => {
    const branches = ['a', 'b', 'c', 'd'].map((name) => update(`refs/heads/${name}`));
    const plan = planPush([update('refs/heads/main'), ...branches], 'main');
    expect(plan.commands.map((planned) => planned.action)).toEqual(['build', 'store', 'store', 'store', 'store']);
    expect(plan.hints.join('\n')).toContain('Only main is built');
  });

  it('follows the branch that the app is deployed from', () => {
    expect(planPush([remove('refs/heads/trunk')], 'trunk').commands[0]?.reason).toContain('trunk');
  });
});
