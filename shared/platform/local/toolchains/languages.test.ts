import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findLanguage } from './languages.ts';
import type { StoredTool } from './stored-tools.ts';
import type { ToolStore } from './tool-store.ts';
import { resolveToolchain } from './toolchain-mounts.ts';

let home: string;
let installed: StoredTool[];
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'paas-languages-'));
  installed = [];
});
afterEach(() => rm(home, { recursive: true, force: true }));

/** A host whose Debian offers these versions. */
function host(versions: readonly string[]): { store: ToolStore; env: { HOME: string } } {
  const store: ToolStore = {
    listVersions: async () => versions,
    async ensureTool(tool) {
      installed.push(tool);
      return `/store/${tool.name}/${tool.version}`;
    },
  };
  return { store, env: { HOME: home } };
}

async function installByMise(tool: string, version: string): Promise<string> {
  const directory = `${home}/.local/share/mise/installs/${tool}/${version}`;
  await mkdir(`${directory}/bin`, { recursive: true });
  await writeFile(`${directory}/bin/${tool}`, '');
  await chmod(`${directory}/bin/${tool}`, 0o755);
  return directory;
}

const rubies = ['2.7.4+1.deb11u6', '3.1.2+7.deb12u1', '3.3.13+0.deb13u1'];

describe('a language', () => {
  it('comes from the release of Debian that has the version', async () => {
    const ruby = await findLanguage('ruby', { version: '~> 3.1.0', source: 'Gemfile' }, host(rubies));
    expect(ruby).toEqual({
      version: '3.1.2',
      path: [],
      mounts: [{ kind: 'stored', name: 'ruby', version: '3.1.2+7.deb12u1' }],
    });
    expect(installed).toEqual([{ name: 'ruby', version: '3.1.2+7.deb12u1' }]);
  });

  it('of Debian is seen in place of the /usr of the host', async () => {
    const { mounts } = await findLanguage('ruby', undefined, host(rubies));
    const parts = { node: '', 'node-headers': '', npm: '', 'static-server': '', 'php-server': '' };
    expect(await resolveToolchain(mounts, { parts, store: host(rubies).store })).toEqual([
      { source: '/store/ruby/3.3.13+0.deb13u1/usr', target: '/usr' },
    ]);
  });

  it('that the operator has installed comes first, in the newest version that fits', async () => {
    await installByMise('ruby', '3.4.1');
    const directory = await installByMise('ruby', '3.10.2');
    const ruby = await findLanguage('ruby', { version: '~> 3.1', source: 'Gemfile' }, host(rubies));
    expect(ruby).toEqual({ version: '3.10.2', path: [`${directory}/bin`], mounts: [{ kind: 'host', path: directory }] });
    expect(installed).toEqual([]);
  });

  it('whose version nobody has is refused with those that there are', async () => {
    await installByMise('ruby', '3.4.1');
    await expect(findLanguage('ruby', { version: '3.2.1', source: '.ruby-version' }, host(rubies))).rejects.toThrow(
      '.ruby-version asks for Ruby 3.2.1, and this platform has 2.7.4, 3.1.2, 3.3.13, 3.4.1. Ask for one of them, or let its operator install it: mise install ruby@3.2.1',
    );
    expect(installed).toEqual([]);
  });

  it.each([
    [
      'php',
      'composer.json asks for PHP 8, which comes from Debian, whose packages this platform cannot reach. Try again, or let',
    ],
    [
      'gleam',
      'composer.json asks for Gleam 8, which this platform does not have and no package registry offers. Its operator can install it: mise install gleam@8',
    ],
  ] as const)('that is not there at all, as %s, is refused with how to get it', async (name, message) => {
    await expect(findLanguage(name, { version: '8', source: 'composer.json' }, host([]))).rejects.toThrow(message);
  });

  it('with something that is no version is refused', async () => {
    await expect(findLanguage('ruby', { version: 'jruby-9.4', source: '.ruby-version' }, host(rubies))).rejects.toThrow(
      '.ruby-version asks for Ruby "jruby-9.4", which is no version or range of versions.',
    );
  });
});
