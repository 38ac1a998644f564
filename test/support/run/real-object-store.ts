import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import type { S3Account } from '#shared/object-store/s3-requests.ts';
import { freePort } from '#test/support/servers/free-port.ts';

/**
 * Once a run: a real S3 server for the tests that otherwise run on the fake. The one that the environment names by the
 * platform's own settings, else a versitygw, a gateway of one program with a directory behind it, which must be in the PATH.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const { PAAS_OBJECT_STORE_URL: bucketUrl, PATH } = process.env;
  if (bucketUrl !== undefined) {
    const { PAAS_OBJECT_STORE_REGION: region = 'us-east-1' } = process.env;
    const { PAAS_OBJECT_STORE_ACCESS_KEY_ID: accessKeyId = '', PAAS_OBJECT_STORE_SECRET_ACCESS_KEY: secretAccessKey = '' } =
      process.env;
    project.provide('objectStore', { bucketUrl, region, accessKeyId, secretAccessKey });
    return async () => undefined;
  }
  const directory = await mkdtemp(join(tmpdir(), 'paas-versitygw-'));
  // A directory of the gateway is a bucket.
  await mkdir(join(directory, 'packs'));
  const port = await freePort();
  const credentials = { accessKeyId: 'test-key', secretAccessKey: crypto.randomUUID() };
  const env = { PATH, ROOT_ACCESS_KEY: credentials.accessKeyId, ROOT_SECRET_KEY: credentials.secretAccessKey };
  const server = spawn('versitygw', ['--quiet', '--port', `127.0.0.1:${port}`, 'posix', directory], { env, stdio: 'ignore' });
  const account = { ...credentials, region: 'us-east-1', bucketUrl: `http://127.0.0.1:${port}/packs` };
  await untilListening(server, account);
  project.provide('objectStore', account);
  return async () => {
    const ended = once(server, 'exit');
    server.kill('SIGTERM');
    await ended;
    await rm(directory, { recursive: true, force: true });
  };
}

async function untilListening(server: ChildProcess, { bucketUrl }: S3Account): Promise<void> {
  let problem: Error | undefined;
  server.on('error', () => {
    problem = new Error(
      'There is no S3 server to test against. Install one (go install github.com/versity/versitygw/cmd/versitygw@latest), or name a bucket by PAAS_OBJECT_STORE_URL and its credentials.',
    );
  });
  server.on('exit', (code) => {
    problem ??= new Error(`versitygw exited with ${code}`);
  });
  for (;;) {
    const answered = await fetch(bucketUrl).then(
      () => true,
      () => false,
    );
    if (problem !== undefined) throw problem;
    if (answered) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
