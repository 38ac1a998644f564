import { describe, expect, it } from 'vitest';
import { defaultQuotas } from '#shared/settings/quotas.ts';
import { parseSettings } from '#shared/settings/settings.ts';

describe('parseSettings', () => {
  it('has a default for everything', () => {
    expect(parseSettings({})).toMatchObject({
      httpPort: 8080,
      httpsPort: 8443,
      sshPort: 2222,
      metricsPort: 9464,
      internalPort: undefined,
      edgePort: undefined,
      internalUrl: undefined,
      baseUrl: 'http://localhost:8080',
      appsDomain: 'apps.localhost',
      platform: 'local',
    });
  });

  it('changes the quotas that are named, and keeps the others', () => {
    expect(parseSettings({ PAAS_QUOTAS: 'apps=7, instances=0' }).quotas).toEqual({ ...defaultQuotas, apps: 7, instances: 0 });
  });

  it('lets the base URL follow the HTTP port', () => {
    expect(parseSettings({ PAAS_HTTP_PORT: '9090' }).baseUrl).toBe('http://localhost:9090');
  });

  it('takes an empty value for unset, and ignores what is not ours', () => {
    expect(parseSettings({ PAAS_HTTP_PORT: '', HOME: '/root' }).httpPort).toBe(8080);
  });

  it.each([
    [{ PAAS_HTTP_PORT: 'eighty' }, 'PAAS_HTTP_PORT'],
    [{ PAAS_SSH_PORT: '70000' }, 'PAAS_SSH_PORT'],
    [{ PAAS_BASE_URL: 'paas.example.com' }, 'PAAS_BASE_URL'],
    [{ PAAS_APPS_DOMAIN: 'https://apps.example.com' }, 'PAAS_APPS_DOMAIN'],
    [{ PAAS_DATABASE_URL: 'mysql://x' }, 'PAAS_DATABASE_URL'],
    [{ PAAS_DATABASE_AUTH: 'md5' }, 'PAAS_DATABASE_AUTH'],
    [{ PAAS_SECRET_KEY: 'short' }, 'PAAS_SECRET_KEY'],
    [{ PAAS_DISK_RESERVE_MIB: '-1' }, 'PAAS_DISK_RESERVE_MIB'],
    [{ PAAS_KEEP_RELEASES: '0' }, 'PAAS_KEEP_RELEASES'],
    [{ PAAS_ORPHAN_DAYS: '0' }, 'PAAS_ORPHAN_DAYS'],
    [{ PAAS_IMAGE_MIB: '5001' }, 'PAAS_IMAGE_MIB'],
    [{ PAAS_IMAGE_MIB: '500 MiB' }, 'PAAS_IMAGE_MIB'],
    [{ PAAS_LOG_LEVEL: 'loud' }, 'PAAS_LOG_LEVEL'],
    [{ PAAS_OBJECT_STORE_URL: 's3://bucket' }, 'PAAS_OBJECT_STORE_URL'],
    [{ PAAS_OBJECT_STORE_URL: 'https://s3.example.com' }, 'PAAS_OBJECT_STORE_URL'],
    [{ PAAS_OBJECT_STORE_URL: 'https://s3.example.com/bucket/a/../b' }, 'PAAS_OBJECT_STORE_URL'],
    [{ PAAS_OBJECT_STORE_URL: 'https://id:secret@s3.example.com/bucket' }, 'PAAS_OBJECT_STORE_URL'],
    [{ PAAS_OBJECT_STORE_URL: 'https://s3.example.com/bucket' }, 'PAAS_OBJECT_STORE_ACCESS_KEY_ID'],
    [{ PAAS_OBJECT_STORE_ACCESS_KEY_ID: 'id', PAAS_OBJECT_STORE_SECRET_ACCESS_KEY: 'secret' }, 'PAAS_OBJECT_STORE_URL'],
    [{ PAAS_TRUSTED_PROXIES: '10.0.0.0/33' }, 'PAAS_TRUSTED_PROXIES'],
    [{ PAAS_TRUSTED_PROXIES: '10.0.0.1,proxy.example.com' }, 'PAAS_TRUSTED_PROXIES'],
    [{ PAAS_SIGNUPS_PER_ADDRESS: 'many' }, 'PAAS_SIGNUPS_PER_ADDRESS'],
    [{ PAAS_CONNECTIONS_PER_ADDRESS: '0' }, 'PAAS_CONNECTIONS_PER_ADDRESS'],
    [{ PAAS_QUOTAS: 'apps=many' }, 'PAAS_QUOTAS'],
    [{ PAAS_QUOTAS: 'cats=3' }, 'PAAS_QUOTAS'],
    [{ PAAS_RELEASE_COMMAND_SECONDS: '0' }, 'PAAS_RELEASE_COMMAND_SECONDS'],
    [{ PAAS_OBJECT_STORE_CACHE_MIB: 'much' }, 'PAAS_OBJECT_STORE_CACHE_MIB'],
    [{ PAAS_GIT_TOLERATE: 'badTimeZone' }, 'PAAS_GIT_TOLERATE'],
    [{ PAAS_GIT_INDEXER: 'isomorphic' }, 'PAAS_GIT_INDEXER'],
    [{ PAAS_GIT_TOLERATE: 'badTimezone,none' }, 'PAAS_GIT_TOLERATE'],
    ...['hasDotgit', 'gitmodulesUrl', 'gitmodulesSymlink', 'duplicateEntries', 'treeNotSorted', 'nullSha1', 'nulInHeader'].map(
      (id): [Record<string, string>, string] => [{ PAAS_GIT_TOLERATE: `badTimezone,${id}` }, 'PAAS_GIT_TOLERATE'],
    ),
  ])('names a bad one in one line: %j', (env, name) => {
    expect(() => parseSettings(env)).toThrow(new RegExp(`^${name}: [^\\n]+$`));
  });

  it.each([
    ['https://s3.example.com/bucket', 'https://s3.example.com/bucket', ''],
    ['http://127.0.0.1:9000/bucket/', 'http://127.0.0.1:9000/bucket', ''],
    ['https://s3.example.com/bucket/paas/one', 'https://s3.example.com/bucket', 'paas/one/'],
    ['https://s3.example.com/bucket/paas/', 'https://s3.example.com/bucket', 'paas/'],
  ])('takes the address of a bucket apart: %s', (address, bucketUrl, prefix) => {
    const credentials = { PAAS_OBJECT_STORE_ACCESS_KEY_ID: 'id', PAAS_OBJECT_STORE_SECRET_ACCESS_KEY: 'secret' };
    expect(parseSettings({ ...credentials, PAAS_OBJECT_STORE_URL: address }).objectStore).toEqual({
      bucketUrl,
      prefix,
      region: 'us-east-1',
      accessKeyId: 'id',
      secretAccessKey: 'secret',
      cacheBytes: 2048 * 1024 * 1024,
    });
  });

  it.each([
    [undefined, ['badTimezone', 'missingSpaceBeforeDate', 'zeroPaddedFilemode']],
    ['none', []],
    ['badTimezone, badEmail,badEmail', ['badTimezone', 'badEmail']],
  ])('knows which faults of old history are let through: %s', (text, faults) => {
    expect(parseSettings({ PAAS_GIT_TOLERATE: text }).toleratedFaults).toEqual(faults);
  });

  it('reads a list of trusted proxies', () => {
    const proxies = ['10.0.0.0/8', '192.0.2.1', '2001:db8::/32', '::1'];
    expect(parseSettings({ PAAS_TRUSTED_PROXIES: ` ${proxies.join(', ')}` }).trustedProxies).toEqual(proxies);
    expect(parseSettings({}).trustedProxies).toEqual([]);
  });

  it('names a setting that does not exist, since it is likely a typing error', () => {
    expect(() => parseSettings({ PAAS_HTTP_PROT: '80' })).toThrow('PAAS_HTTP_PROT is not a setting');
  });

  it("does not mind the command line's own variables in the shell that starts the platform", () => {
    expect(
      parseSettings({ PAAS_API_URL: 'http://localhost:9090', PAAS_APP: 'hello', PAAS_PASSWORD: 'x', PAAS_TOKEN: 'x' }).httpPort,
    ).toBe(8080);
  });

  it('never repeats a value, which may be a secret', () => {
    expect(() => parseSettings({ PAAS_WEBHOOK_SECRET: 'hunter2' })).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining('hunter2') }),
    );
  });

  const cluster = {
    PAAS_PLATFORM: 'kubernetes',
    PAAS_KUBERNETES_REPOSITORY: 'registry.example.com:5000/paas',
  };

  it('has a default for most of what a cluster needs, and none of it on one machine', () => {
    expect(parseSettings({ ...cluster, PAAS_PLATFORM: 'local' }).kubernetes).toBeUndefined();
    expect(parseSettings(cluster).kubernetes).toMatchObject({
      namespace: 'paas-system',
      gateway: { namespace: 'gateway', name: 'paas' },
      issuer: { kind: 'ClusterIssuer', name: 'letsencrypt' },
      tenantRoom: { pods: 100, cpu: '32', memory: '64Gi', storage: '100Gi' },
      repository: 'registry.example.com:5000/paas',
      secretsRole: undefined,
      prometheus: undefined,
    });
  });

  it("changes the tenant's room and the names of the gateway's metrics where they are given, and keeps the others", () => {
    const { kubernetes } = parseSettings({
      ...cluster,
      PAAS_KUBERNETES_TENANT_ROOM: 'pods=20, memory=8Gi',
      PAAS_PROMETHEUS_URL: 'http://prometheus:9090',
      PAAS_PROMETHEUS_TRAFFIC: 'requests=traefik_service_requests_total error_statuses=5.. service_pattern=.*-SERVICE-80@.*',
    });
    expect(kubernetes?.tenantRoom).toEqual({ pods: 20, cpu: '32', memory: '8Gi', storage: '100Gi' });
    expect(kubernetes?.prometheus?.traffic).toMatchObject({
      requests: 'traefik_service_requests_total',
      errorStatuses: '5..',
      servicePattern: '.*-SERVICE-80@.*',
      statusLabel: 'response_code',
    });
  });

  it.each([
    [{ PAAS_KUBERNETES_REPOSITORY: '' }, 'PAAS_KUBERNETES_REPOSITORY'],
    [{ PAAS_KUBERNETES_REPOSITORY: 'https://registry.example.com/paas' }, 'PAAS_KUBERNETES_REPOSITORY'],
    [{ PAAS_LOKI_URL: 'loki' }, 'PAAS_LOKI_URL'],
    [{ PAAS_KUBERNETES_SECRETS_ROLE: 'role' }, 'PAAS_KUBERNETES_SERVICE_ACCOUNT'],
    [{ PAAS_KUBERNETES_SERVICE_ACCOUNT: 'account' }, 'PAAS_KUBERNETES_SECRETS_ROLE'],
    [{ PAAS_KUBERNETES_GATEWAY: 'paas' }, 'PAAS_KUBERNETES_GATEWAY'],
    [{ PAAS_KUBERNETES_ISSUER: 'letsencrypt' }, 'PAAS_KUBERNETES_ISSUER'],
    [{ PAAS_KUBERNETES_TENANT_ROOM: 'pods=many' }, 'PAAS_KUBERNETES_TENANT_ROOM'],
    [{ PAAS_KUBERNETES_TENANT_ROOM: 'cats=3' }, 'PAAS_KUBERNETES_TENANT_ROOM'],
    [{ PAAS_PROMETHEUS_TRAFFIC: 'requests' }, 'PAAS_PROMETHEUS_TRAFFIC'],
    [{ PAAS_KUBERNETES_BUILDER: 'builder' }, 'PAAS_KUBERNETES_BUILDER'],
    [{ PAAS_KUBERNETES_BUILD_MEMORY: 'much' }, 'PAAS_KUBERNETES_BUILD_MEMORY'],
  ])('names the setting of a cluster that is wrong: %o', (wrong, name) => {
    expect(() => parseSettings({ ...cluster, ...wrong })).toThrow(new RegExp(`^${name}: `));
  });
});
