/**
 * `npm run test:fuzz`: schemathesis, driven by the OpenAPI document, against a real platform: no answer of 500 or more,
 * none that the document does not promise. Arguments go to schemathesis, as `-- --max-examples 500`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startFuzzProxy } from '#test/fuzz/fuzz-proxy.ts';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser } from '#test/support/platform/user.ts';
import { runChecked } from '#test/support/run-program.ts';

const version = '4.32.5';
const environment = join(tmpdir(), `paas-schemathesis-${version}`);
const program = join(environment, 'bin/schemathesis');
const checks = ['not_a_server_error', 'status_code_conformance', 'content_type_conformance', 'response_schema_conformance'];

async function install(): Promise<void> {
  if (existsSync(program)) return;
  await rm(environment, { recursive: true, force: true });
  await runChecked('python3', ['-m', 'venv', environment]);
  await runChecked(join(environment, 'bin/pip'), ['install', '--quiet', `schemathesis==${version}`]);
}

const placeholder = 'in-the-name-of-an-owner';
const owners = 6;

/** Owners of one tenant with the app that the examples of the document name: deployed, with what an app can have. */
async function furnish(platform: RunningPlatform) {
  const ada = await createUser(platform);
  const { tenant } = await ada.api<{ tenant: { id: string } }>('GET', '/v1/user');
  const tokens = [ada.token];
  for (let other = 1; other < owners; other += 1) {
    const email = `owner-${other}@example.com`;
    const { token } = await ada.api<{ token: string }>('POST', '/v1/tenant/invitations', { email, role: 'owner' });
    const body = { email, password: 'correct horse battery', invitation_token: token };
    tokens.push((await ada.api<{ access_token: string }>('POST', '/v1/signup', body)).access_token);
  }
  const app = await ada.createApp('hello');
  const copy = await ada.createWorkingCopy(app.push_url, nodeApp('hello'));
  const { code, stderr } = await copy.push();
  if (code !== 0) throw new Error(`The app of the examples could not be pushed:\n${stderr}`);
  await ada.api('POST', '/v1/apps/hello/addons', { type: 'kvstore', plan: 'free' });
  return { ada, tenantId: tenant.id, tokens };
}

await install();
const platform = await startPlatform({
  env: { PAAS_LOG_LEVEL: 'warn', PAAS_WEBHOOK_SECRET: 'a secret that the git host knows', PAAS_CANARY_STEP_SECONDS: '0' },
});
try {
  const { ada, tenantId, tokens } = await furnish(platform);
  const proxy = await startFuzzProxy({
    port: platform.httpPort,
    tenantId,
    tokens,
    placeholder,
    async answered(method, path, status) {
      if (status >= 300) return;
      // Taken away by one request, it would be missing in all others.
      if (method === 'DELETE' && path.endsWith('/v1/apps/hello')) await ada.ask('POST', '/v1/apps/hello/restore');
      if (method === 'PATCH' && path.includes('/v1/tenant/members/')) await ada.ask('PATCH', path, { role: 'owner' });
    },
  });
  const args = [
    ...['run', `${proxy.baseUrl}/v1/openapi.json`, '--url', proxy.baseUrl, '--checks', checks.join(',')],
    ...['--header', `Authorization: Bearer ${placeholder}`, '--request-timeout', '30'],
    ...['--workers', '1', '--max-examples', '20', '--generation-database', 'none', '--no-color'],
    ...process.argv.slice(2),
  ];
  // What it keeps of a run goes there too.
  const child = spawn(program, args, { stdio: 'inherit', cwd: environment });
  const [code] = (await once(child, 'close')) as [number | null];
  proxy.close();
  const tally = [...proxy.statuses].sort(([one], [other]) => one - other).map(([status, count]) => `${count} × ${status}`);
  console.log(`Answers: ${tally.join(', ')}`);
  const faults = platform
    .output()
    .split('\n')
    .filter((line) => line.includes('request failed'));
  for (const fault of faults) console.log(fault);
  process.exitCode = code === 0 && faults.length === 0 ? 0 : 1;
  await ada.remove();
} finally {
  await removePlatform(platform);
}
