/** Finds JDKs and Java's build tools on the host. */
import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { findExecutable } from '#shared/files/find-executable.ts';
import type { JavaToolchain, Toolchain } from './toolchain.ts';
import type { ToolchainMount } from './toolchain-mounts.ts';

const roots = ['/usr/lib/jvm', '/opt/java', '/opt/jdk'] as const;

/** Every JDK of the host, that of `java` on PATH first. */
export async function findHostJavas(
  env: Readonly<Record<string, string | undefined>>,
  path: string,
): Promise<readonly JavaToolchain[]> {
  const program = await findExecutable('java', path);
  const first = program === undefined ? undefined : /^(.*)\/bin\/java$/.exec(await realpath(program))?.[1];
  const sdkman = `${env['HOME']}/.sdkman/candidates/java`;
  const others = [...roots, sdkman].map(async (root) => (await readdir(root).catch(() => [])).map((name) => `${root}/${name}`));
  const homes = [first, env['JAVA_HOME'], ...(await Promise.all(others)).flat()];
  const found = new Map<string, JavaToolchain>();
  for (const home of homes) {
    const real = home === undefined ? undefined : await realpath(home).catch(() => undefined);
    if (real === undefined || found.has(real)) continue;
    const release = await readFile(`${real}/release`, 'utf8').catch(() => '');
    const version = /^JAVA_VERSION="([^"]+)"/m.exec(release)?.[1];
    const compiler = await stat(`${real}/bin/javac`).catch(() => undefined);
    if (version === undefined || compiler === undefined) continue;
    found.set(real, { version, home: real, path: [`${real}/bin`], mounts: await mountsOf(real) });
  }
  return [...found.values()];
}

/** Maven or Gradle of the host. */
export async function findHostJavaTool(name: 'mvn' | 'gradle', path: string): Promise<Omit<Toolchain, 'version'> | undefined> {
  const program = await findExecutable(name, path);
  if (program === undefined) return undefined;
  const home = /^(.*)\/bin\/\w+$/.exec(await realpath(program))?.[1];
  return home === undefined ? undefined : { path: [`${home}/bin`], mounts: await mountsOf(home) };
}

/** Debian keeps the configuration of both in /etc, behind symlinks. */
async function mountsOf(home: string): Promise<readonly ToolchainMount[]> {
  const paths = new Set(home.startsWith('/usr/') ? [] : [home]);
  for (const part of ['conf', 'conf/net.properties', 'conf/security/java.security', 'lib/security/default.policy']) {
    const real = await realpath(`${home}/${part}`).catch(() => undefined);
    const configuration = real === undefined ? undefined : /^\/etc\/(java-\d+-openjdk|maven|gradle)(?=\/|$)/.exec(real)?.[0];
    if (configuration !== undefined) paths.add(configuration);
  }
  return [...paths].map((path) => ({ kind: 'host', path }));
}
