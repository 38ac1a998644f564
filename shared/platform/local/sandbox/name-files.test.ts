import { hostname } from 'node:os';
import { expect, it } from 'vitest';
import { planHosts, readNameFiles } from './name-files.ts';

it('code with a network of its own sees no name of the host or of its network', async () => {
  const { hosts, resolvers } = await readNameFiles(false);
  expect(hosts).toBe('127.0.0.1 localhost app\n');
  expect(hosts).not.toContain(hostname());
  expect(resolvers).toMatch(/^(nameserver \S+\n)*$/);
});

it('localhost is on 127.0.0.1 only, whatever else the file of the host lists', () => {
  const text = '::1 localhost ip6-localhost # both\n127.0.0.1 localhost\n10.0.0.5 db.example.com db\n';
  expect(planHosts(text)).toBe('127.0.0.1 localhost app\n::1 ip6-localhost\n10.0.0.5 db.example.com db\n');
});
