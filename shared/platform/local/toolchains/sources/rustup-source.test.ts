import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRustupSource } from './rustup-source.ts';

describe("versions of Rust's distribution server", () => {
  const channels: Readonly<Record<string, string>> = {
    '1.88': 'date = "2025-06-26"\n[pkg.rust]\nversion = "1.88.0 (6b00bc388 2025-06-23)"\n',
    nightly: 'date = "2026-01-02"\n[pkg.rust]\nversion = "1.97.0-nightly (abc 2026-01-01)"\n',
  };
  const server = createServer((request, response) => {
    const name = /^\/dist\/channel-rust-(.*)\.toml$/.exec(request.url ?? '')?.[1] ?? '';
    const text = channels[name];
    response.writeHead(name === '1.50' ? 503 : text === undefined ? 404 : 200).end(text ?? '');
  });
  let url: string;
  beforeAll(async () => {
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());

  const listVersions = (request: string) =>
    createRustupSource({
      hostEnv: { RUSTUP_DIST_SERVER: url },
      node: '',
      npm: '',
      findProgram: async () => '/usr/bin/rustup',
    }).listVersions(request);

  it('are exact for a channel', async () => {
    expect(await listVersions('1.88')).toEqual(['1.88.0']);
  });

  it('have the date of a channel that changes each day', async () => {
    expect(await listVersions('nightly')).toEqual(['nightly-2026-01-02']);
    expect(await listVersions('nightly-2025-05-05')).toEqual(['nightly-2025-05-05']);
  });

  it('are none for what does not exist, and where the host has no rustup', async () => {
    expect(await listVersions('1.99')).toEqual([]);
    const without = createRustupSource({ hostEnv: {}, node: '', npm: '', findProgram: async () => undefined });
    expect(await without.listVersions('1.88')).toEqual([]);
  });

  it('are an error while the server has one', async () => {
    await expect(listVersions('1.50')).rejects.toThrow('503');
  });
});
