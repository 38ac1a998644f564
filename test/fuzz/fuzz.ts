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
import { removePlatform, startPlatform } from '#test/support/platform.ts';
import { runChecked } from '#test/support/run.ts';

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

await install();
const platform = await startPlatform({ env: { PAAS_LOG_LEVEL: 'warn' } });
try {
  const signedUp = await fetch(`${platform.baseUrl}/v1/signup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'ada@example.com', password: 'correct horse battery' }),
  });
  const { data } = (await signedUp.json()) as { data: { access_token: string } };
  // What the examples of the document name.
  const headers = { authorization: `Bearer ${data.access_token}`, 'content-type': 'application/json' };
  await fetch(`${platform.baseUrl}/v1/apps`, { method: 'POST', headers, body: JSON.stringify({ name: 'hello' }) });
  const args = [
    ...['run', `${platform.baseUrl}/v1/openapi.json`, '--checks', checks.join(',')],
    ...['--header', `Authorization: Bearer ${data.access_token}`],
    // Under the limit of 600 a minute, or most answers would be 429.
    ...['--rate-limit', '9/s', '--workers', '2', '--max-examples', '20', '--generation-database', 'none', '--no-color'],
    ...process.argv.slice(2),
  ];
  const child = spawn(program, args, { stdio: 'inherit' });
  const [code] = (await once(child, 'close')) as [number | null];
  const faults = platform
    .output()
    .split('\n')
    .filter((line) => line.includes('request failed'));
  for (const fault of faults) console.log(fault);
  process.exitCode = code === 0 && faults.length === 0 ? 0 : 1;
} finally {
  await removePlatform(platform);
}
