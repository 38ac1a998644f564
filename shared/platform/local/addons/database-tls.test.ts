import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { type AppId, newTenantId, newUuid } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { removeTree } from '#shared/platform/local/disk/trees.ts';
import { issueAuthority } from '#shared/tls/issue-certificate.ts';
import { permittedNames } from '#shared/tls/permitted-names.ts';
import type { AddonKind } from './addon-kind.ts';
import { createTenantDatabases } from './tenant-databases.ts';

let directory: string;
let databases: AddonKind;
let ca: string;
let uri: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-tls-'));
  const authorityDirectory = join(directory, 'gateway');
  const { certificate, key } = await issueAuthority(permittedNames(['apps.localhost']), 30, new Date());
  ca = certificate;
  await mkdir(authorityDirectory);
  await writeFile(join(authorityDirectory, 'ca.pem'), `${certificate}\n`);
  await writeFile(join(authorityDirectory, 'ca-key.pem'), `${key}\n`);
  databases = createTenantDatabases({
    directory: join(directory, 'postgres'),
    authorityDirectory,
    clock: systemClock,
    log: createLog('silent', () => undefined),
    settings: { fsync: 'off' },
  });
  const size = { replicas: 1, memoryBytes: 1, connections: 5, password: 'a'.repeat(32) };
  ({ uri } = await databases.ensure({ appId: newUuid<AppId>(), tenantId: newTenantId(), type: 'database', ...size }));
});
afterAll(async () => {
  await databases?.stopAll();
  await removeTree(directory);
});

async function isEncrypted(ssl: NonNullable<pg.ClientConfig['ssl']>): Promise<boolean | undefined> {
  const client = new pg.Client({ connectionString: uri, ssl });
  await client.connect();
  try {
    const { rows } = await client.query<{ ssl: boolean }>('select ssl from pg_stat_ssl where pid = pg_backend_pid()');
    return rows[0]?.ssl;
  } finally {
    await client.end();
  }
}

it('accepts TLS, with a certificate of the local authority for its address, and connections without it', async () => {
  expect(await isEncrypted({ rejectUnauthorized: false })).toBe(true);
  expect(await isEncrypted({ ca })).toBe(true);
  expect(await isEncrypted(false)).toBe(false);
});

it('has an address that every driver takes', () => {
  expect(uri).toMatch(/^postgresql:\/\/app_[0-9a-f]{32}:a{32}@127\.0\.0\.1:\d+\/app_[0-9a-f]{32}$/);
});
