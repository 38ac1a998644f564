import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createPortPool, planPortRange, readPortRange } from './port-pool.ts';

describe('port pool', () => {
  it('stays below the range of outgoing connections', async () => {
    expect(planPortRange('32768\t60999\n')).toEqual({ from: 20_000, to: 32_767 });
    expect(planPortRange('25000 65535')).toEqual({ from: 20_000, to: 24_999 });
    const { from, to } = await readPortRange();
    expect(to - from).toBeGreaterThanOrEqual(999);
  });

  it('hands no port out twice, also to callers at the same time, until it is released', async () => {
    const pool = createPortPool({ from: 100, to: 119 }, async () => true);
    const ports = await Promise.all(Array.from({ length: 20 }, () => pool.reserve()));
    expect(new Set(ports).size).toBe(20);
    await expect(pool.reserve()).rejects.toThrow('No port is free');
    pool.release(107);
    expect(await pool.reserve()).toBe(107);
  });

  it('hands out none that somebody holds or listens on', async () => {
    const pool = createPortPool({ from: 100, to: 102 }, async (port) => port !== 101);
    pool.hold(100);
    expect(await pool.reserve()).toBe(102);
    await expect(pool.reserve()).rejects.toThrow();
  });

  it('gives the preferred port when that is still free', async () => {
    const pool = createPortPool({ from: 100, to: 110 }, async (port) => port !== 105);
    expect(await pool.reserve(103)).toBe(103);
    expect(await pool.reserve(105)).not.toBe(105);
  });

  it.each(['127.0.0.1', '0.0.0.0', '::', '::1'])('sees a listener on %s', async (host) => {
    const server = createServer().listen(0, host);
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const pool = createPortPool({ from: port, to: port });
    await expect(pool.reserve()).rejects.toThrow('No port is free');
    server.close();
    await once(server, 'close');
    expect(await pool.reserve()).toBe(port);
  });
});
