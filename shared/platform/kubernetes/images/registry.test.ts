import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import { type FakeRegistry, pushImage, startFakeRegistry } from '../testing/fake-registry.ts';
import { readImageConfig } from './image-config.ts';
import { createKubernetesImages } from './images.ts';
import { createRegistry } from './registry.ts';
import { parseDockerConfig } from './registry-credentials.ts';

describe('a registry with a password', () => {
  let registry: FakeRegistry;
  beforeAll(async () => {
    registry = await startFakeRegistry('hunter2');
  });
  afterAll(() => registry?.stop());
  const open = (password: string | undefined) =>
    createRegistry({
      host: registry.host,
      insecure: true,
      readCredentials: async () => (password === undefined ? undefined : { username: 'paas', password }),
    });

  it('is asked with the credentials, tags page by page', async () => {
    const appId = newUuid<AppId>();
    const repository = `${registry.host}/paas/${appId}/buildpacks`;
    const authorization = `Basic ${Buffer.from('paas:hunter2').toString('base64')}`;
    for (const tag of ['a', 'b', 'c', 'd', 'e']) await pushImage({ repository, tag, config: {}, layer: tag }, authorization);
    const images = createKubernetesImages(open('hunter2'), `${registry.host}/paas`);
    expect(await images.listImages(appId)).toHaveLength(5);
    expect(await images.deleteImages(appId)).toBe(true);
    expect(await images.listImages(appId)).toEqual([]);
  });

  it('says that an image is not there whose processes are asked for', async () => {
    const images = createKubernetesImages(open('hunter2'), `${registry.host}/paas`);
    const image = { repository: `${registry.host}/paas/x`, digest: `sha256:${'0'.repeat(64)}`, builder: 'buildpacks' as const };
    await expect(images.readConfig(image)).rejects.toThrow('is not in the registry');
  });

  it.each([
    ['wrong', 'does not accept the credentials'],
    [undefined, 'asks for a user and a password'],
  ])('says what is wrong when the password is %s', async (password, message) => {
    const name = `${registry.host}/paas/x`;
    await expect(open(password).listTags(name)).rejects.toThrow(message);
  });
});

it('says that a registry does not answer', async () => {
  const registry = createRegistry({ host: '127.0.0.1:1', insecure: true, readCredentials: async () => undefined });
  await expect(registry.listTags('127.0.0.1:1/paas/x')).rejects.toThrow('The registry at 127.0.0.1:1 does not answer');
});

it.each([
  [{ auths: { 'registry.io': { auth: Buffer.from('paas:a:b').toString('base64') } } }, { username: 'paas', password: 'a:b' }],
  [{ auths: { 'https://registry.io': { username: 'paas', password: 'x' } } }, { username: 'paas', password: 'x' }],
  [{ auths: { 'other.io': { username: 'paas', password: 'x' } } }, undefined],
  ['nonsense', undefined],
])('reads the password of a registry from %j', (config, expected) => {
  expect(parseDockerConfig(JSON.stringify(config), 'registry.io')).toEqual(expected);
});

const label = (processes: object[]) => ({
  config: { Entrypoint: ['/cnb/process/web'], Labels: { 'io.buildpacks.build.metadata': JSON.stringify({ processes }) } },
});

it.each([
  [
    'an array since platform API 0.10',
    { type: 'web', command: ['node', 'a b.js'], args: ['-x'], direct: true },
    "node 'a b.js' -x",
  ],
  ['text before', { type: 'web', command: 'npm start', args: [], direct: false }, 'npm start'],
  ['no process type web', { type: 'task', command: ['x'], args: [] }, undefined],
])('takes the command of an image of buildpacks from its label: %s', (_, process, expected) => {
  expect(readImageConfig(label([process]), 'buildpacks')).toEqual({ command: expected });
});

it('takes the command of an image of a Dockerfile from its entry point', () => {
  expect(readImageConfig({ config: { Entrypoint: ['/docker entry'], Cmd: ['serve'] } }, 'dockerfile')).toEqual({
    command: "'/docker entry' serve",
  });
});
