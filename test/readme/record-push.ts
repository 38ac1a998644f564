/**
 * Writes the example of a push in README.md: npm run readme
 *
 * It is the output of real pushes to a real platform: an Express app, then a change of it. Only the ports are replaced by the default
 * ones. Express is fetched from the package registry, so the command needs a network.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser } from '#test/support/platform/user.ts';
import { runChecked } from '#test/support/run-program.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const readme = `${root}README.md`;
const [begin, end] = ['<!-- push: written by npm run readme -->\n', '<!-- end of push -->\n'];

const serverOf = (greeting: string): string => `import express from 'express';

express()
  .get('/', (request, response) => response.send(${JSON.stringify(greeting)}))
  .listen(process.env.PORT);
`;
const manifest = {
  name: 'hello',
  version: '1.0.0',
  private: true,
  type: 'module',
  scripts: { start: 'node server.js' },
  dependencies: { express: '5.2.1' },
};

/** An app with a lockfile, as path → content. */
async function expressApp(): Promise<Record<string, string>> {
  const directory = await mkdtemp(join(tmpdir(), 'paas-readme-'));
  const packageJson = `${JSON.stringify(manifest, null, 2)}\n`;
  await writeFile(join(directory, 'package.json'), packageJson);
  const npm = join(root, 'node_modules/npm/bin/npm-cli.js');
  await runChecked(process.execPath, [npm, 'install', '--package-lock-only', '--no-audit', '--no-fund'], { cwd: directory });
  const lock = await readFile(join(directory, 'package-lock.json'), 'utf8');
  await rm(directory, { recursive: true, force: true });
  return {
    '.gitignore': 'node_modules\n',
    'package.json': packageJson,
    'package-lock.json': lock,
    'server.js': serverOf('Hello'),
  };
}

/** What a terminal shows of a push: without control sequences, and with the ports that a platform has by default. */
function shown(output: string, { httpPort, sshPort }: RunningPlatform): string {
  return output
    .replaceAll(`:${httpPort}`, ':8080')
    .replaceAll(`:${sshPort}`, ':2222')
    .replace(/\u001b\[[\d;]*[A-Za-z]/g, '')
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '' && line !== 'remote:' && !line.startsWith('Warning: Permanently added'))
    .join('\n');
}

const platform = await startPlatform();
const ada = await createUser(platform);
try {
  const app = await ada.createApp('hello');
  const copy = await ada.createWorkingCopy(app.push_url, await expressApp());
  const pushes: string[] = [];
  for (const greeting of ['Hello', 'Hello again']) {
    await copy.commit({ 'server.js': serverOf(greeting) });
    const { code, output } = await copy.push();
    if (code !== 0) throw new Error(`The push failed:\n${output}`);
    pushes.push(`$ git push paas main\n${shown(output, platform)}\n`);
  }
  const text = await readFile(readme, 'utf8');
  const [before, rest] = text.split(begin);
  const after = rest?.split(end)[1];
  if (before === undefined || after === undefined) throw new Error(`${readme} has no place for the example.`);
  await writeFile(readme, `${before}${begin}\`\`\`console\n${pushes.join('\n')}\`\`\`\n${end}${after}`);
  console.log(pushes.join('\n'));
} finally {
  await ada.remove();
  await removePlatform(platform);
}
