import { expect, it } from 'vitest';
import { readImageSource, toImageSource } from './image-source.ts';

it.each([
  'nginx',
  'nginx:1.27',
  'ghcr.io/owner/name',
  'registry.internal:5000/a/b_c:v1.0-rc1',
  `alpine@sha256:${'a'.repeat(64)}`,
])('accepts the reference %s, and makes a source of it', async (image) => {
  const entries = await Array.fromAsync(readImageSource(toImageSource(image)));
  expect(entries).toEqual([{ path: 'Dockerfile', kind: 'file', content: new TextEncoder().encode(`FROM ${image}\n`) }]);
});

it.each([
  '',
  'a b',
  'nginx\nRUN id',
  '-x',
  '--all',
  'https://ghcr.io/a',
  'A/B',
  'a:',
  'a@sha256:12',
  '$IMAGE',
  'oci:/etc',
  'a//b',
  'x'.repeat(600),
])('refuses %j, by which an instruction of a Dockerfile could go on', (image) => {
  expect(() => toImageSource(image)).toThrow('must be a reference');
});
