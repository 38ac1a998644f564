import { describe, expect, it } from 'vitest';
import { openPlanFixture } from '#test/support/builds/plan-fixture.ts';
import { chooseBuilders } from './choose-builders.ts';

const { openSource, planFor } = openPlanFixture();

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

  it.each<[string, Record<string, string>]>([
    ['a program that is committed', { Procfile: 'web: ./server --port $PORT\n', server: '' }],
    ['a program of the system', { Procfile: 'web: /usr/bin/python3 -m http.server $PORT\n' }],
    ['a build command of its own', { Procfile: 'web: target/app\n', 'paas.yml': 'build: make\n' }],
  ])('but has a Procfile is not refused with %s', async (_, files) => {
    await expect(planFor({ 'build.sbt': '', ...files })).resolves.toMatchObject({ builder: 'procfile' });
  });

  it('is refused if its Procfile starts what a builder would have to make', async () => {
    const scala = planFor({ 'build.sbt': '', Procfile: 'web: target/universal/stage/bin/app -Dhttp.port=${PORT}\n' });
    await expect(scala).rejects.toThrow(
      'This platform has no builder for Scala (build.sbt), so there is no target/universal/stage/bin/app, which the app starts.',
    );
  });
});
