/** Directories with the files of Debian packages, of which sandboxes see /usr and parts of /etc in place of the host's. */
import { execFile, spawn } from 'node:child_process';
import { mkdir, open, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { ifMissing } from '#shared/files/if-missing.ts';

const run = promisify(execFile);

/** Nothing that a program reads. */
const leftOut = ['doc', 'man', 'info', 'lintian', 'bug', 'locale', 'doc-base', 'gtk-doc'].map((name) => `./usr/share/${name}/*`);

/**
 * Unpacks packages to `root`, of which only `usr` and `etc` stay. Scripts of packages do not run: what sandboxes need of their work is done
 * here.
 * @throws Error if one cannot be unpacked
 */
export async function unpackDebianRoot(packages: readonly string[], root: string): Promise<void> {
  const [staged, programs] = [`${root}/unpacked`, ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32']];
  for (const name of programs) {
    await mkdir(`${staged}/usr/${name}`, { recursive: true, mode: 0o755 });
    await symlink(`usr/${name}`, `${staged}/${name}`);
  }
  for (const file of packages) await unpack(file, staged);
  await linkAlternatives(`${staged}/usr/bin`);
  await linkLibraries(`${staged}/usr/lib`);
  await configurePhp(staged);
  for (const name of ['usr', 'etc']) await rename(`${staged}/${name}`, `${root}/${name}`);
  await rm(staged, { recursive: true, force: true });
  // Nobody gets the rights of a file's owner by it.
  await run('/usr/bin/chmod', ['--recursive', 'u+rwX,go+rX,go-w,u-s,g-s', '--', `${root}/usr`, `${root}/etc`]);
}

/** Into the directories that stand for the old places, such as /bin. */
async function unpack(file: string, root: string): Promise<void> {
  const archive = `${file}.tar`;
  await using output = await open(archive, 'w');
  await runToEnd('dpkg-deb', ['--fsys-tarfile', file], output.fd);
  const exclude = leftOut.map((pattern) => `--exclude=${pattern}`);
  const flags = ['--extract', '--keep-directory-symlink', '--no-same-owner', '--directory', root, '--file', archive];
  await runToEnd('tar', [...flags, ...exclude], 'ignore');
  await rm(archive);
}

async function runToEnd(program: string, args: readonly string[], output: number | 'ignore'): Promise<void> {
  const child = spawn(program, [...args], { stdio: ['ignore', output, 'ignore'] });
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} exited with code ${String(code)}.`);
}

/** Names that Debian leaves to the administrator's choice, and where their programs are, from the directory of programs. */
const alternatives = [
  ['awk', /^mawk$/], ['cc', /^gcc$/], ['c++', /^g\+\+$/], ['which', /^which\.debianutils$/], ['php', /^php\d\.\d$/],
  ['convert', /^convert-im/], ['identify', /^identify-im/], ['mogrify', /^mogrify-im/],
  ['automake', /^automake-1/], ['aclocal', /^aclocal-1/], ['yacc', /^bison\.yacc$/], ['nc', /^nc\.(?:openbsd|traditional)$/],
  ['mvn', /^mvn$/, '../share/maven/bin'],
] as const; // biome-ignore format: a table

/** @param directory of programs: `/usr/bin` of a root */
export async function linkAlternatives(directory: string): Promise<void> {
  const names = await readdir(directory);
  for (const [name, pattern, elsewhere] of alternatives) {
    const there = elsewhere === undefined ? names : await readdir(`${directory}/${elsewhere}`).catch(ifMissing([] as string[]));
    const program = there.find((found) => pattern.test(found));
    const target = elsewhere === undefined ? program : `${elsewhere}/${program}`;
    if (program !== undefined && target !== undefined && !names.includes(name)) await symlink(target, `${directory}/${name}`);
  }
}

/** Libraries that Debian leaves to the administrator's choice have directories of their own: ffmpeg and numpy of Debian link to them. */
export async function linkLibraries(directory: string): Promise<void> {
  for (const architecture of (await readdir(directory)).filter((name) => name.endsWith('-linux-gnu')))
    for (const kind of ['blas', 'lapack']) {
      const libraries = await readdir(`${directory}/${architecture}/${kind}`).catch(ifMissing([] as string[]));
      const present = await readdir(`${directory}/${architecture}`);
      for (const name of libraries.filter((library) => /\.so\.\d+$/.test(library) && !present.includes(library)))
        await symlink(`${kind}/${name}`, `${directory}/${architecture}/${name}`);
    }
}

/** The settings that PHP's packages would make, for programs and servers, with all extensions that are there. */
async function configurePhp(root: string): Promise<void> {
  const versions = (await readdir(`${root}/usr/lib/php`).catch(ifMissing([] as string[]))).filter((name) =>
    /^\d\.\d$/.test(name),
  );
  for (const version of versions) {
    const extensions = await findExtensions(`${root}/usr/share`, version);
    for (const kind of ['cli', 'fpm']) {
      const directory = `${root}/etc/php/${version}/${kind}`;
      await mkdir(`${directory}/conf.d`, { recursive: true });
      const settings = await readFile(`${root}/usr/lib/php/${version}/php.ini-production`, 'utf8').catch(ifMissing(''));
      await writeFile(`${directory}/php.ini`, settings);
      for (const { name, text } of extensions) {
        const priority = /^;\s*priority=(\d+)/m.exec(text)?.[1] ?? '20';
        await writeFile(`${directory}/conf.d/${priority}-${name}.ini`, text);
      }
    }
  }
}

/** `/usr/share/php8.2-xml/xml/dom.ini` and the like. */
async function findExtensions(share: string, version: string): Promise<readonly { name: string; text: string }[]> {
  const packages = (await readdir(share)).filter((name) => name.startsWith(`php${version}-`));
  const found = packages.map(async (name) => {
    const directory = `${share}/${name}/${name.slice(`php${version}-`.length)}`;
    const files = (await readdir(directory).catch(ifMissing([] as string[]))).filter((file) => file.endsWith('.ini'));
    return Promise.all(
      files.map(async (file) => ({ name: file.slice(0, -'.ini'.length), text: await readFile(`${directory}/${file}`, 'utf8') })),
    );
  });
  return (await Promise.all(found)).flat();
}

/** Parts of /etc that a root brings, as far as it has them. */
const settings = /^(?:ImageMagick-[67]|fonts|nginx|php|maven|java-\d+-openjdk)$/;

/** What sandboxes see of a root: sources and targets. The root's /usr takes the place of the host's. */
export async function listRootMounts(root: string): Promise<readonly { source: string; target: string }[]> {
  const found = (await readdir(`${root}/etc`).catch(ifMissing([] as string[]))).filter((name) => settings.test(name));
  return [
    { source: `${root}/usr`, target: '/usr' },
    ...found.map((name) => ({ source: `${root}/etc/${name}`, target: `/etc/${name}` })),
  ];
}
