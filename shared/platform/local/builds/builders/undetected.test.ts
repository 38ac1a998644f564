import { describe, expect, it } from 'vitest';
import { openPlanFixture } from '#test/support/builds/plan-fixture.ts';
import { chooseBuilders } from './choose-builders.ts';

const { openSource } = openPlanFixture();

describe('a source that nothing builds', () => {
  const causeOf = async (files: Record<string, string>): Promise<string> => {
    const source = await openSource(files);
    return chooseBuilders(source).then(
      ({ main }) => `built by ${main.builder.name}`,
      (error: Error) => error.message,
    );
  };

  it.each([
    [{ 'Package.swift': '' }, 'This platform has no builder for Swift (Package.swift).'],
    [{ 'app.cabal': '' }, 'This platform has no builder for Haskell (app.cabal).'],
    [{ 'README.md': '' }, 'No language detected at the top of the source. Looked for: package.json'],
  ])('such as %j is told why', async (files, cause) => {
    expect(await causeOf(files)).toContain(cause);
  });

  it('at its top is told where below there is an app', async () => {
    const cause = await causeOf({
      'README.md': '',
      'backend/go.mod': '',
      'frontend/package.json': '{}',
      '.github/index.html': '',
    });
    expect(cause).toContain('but there is backend/go.mod, frontend/package.json.');
    expect(cause).toContain('paas settings:set directory=backend');
  });

  it('but has a start command of its own is run as it is', async () => {
    const { main } = await chooseBuilders(await openSource({ 'bin/run': '' }), undefined, 'bin/run');
    expect(main.detection).toEqual({ what: 'Plain app', why: 'a start command' });
  });

  it('but has a Procfile is run as it is', async () => {
    expect(await causeOf({ 'Package.swift': '', Procfile: 'web: ./server' })).toBe('built by procfile');
  });
});
