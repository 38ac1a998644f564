import { describe, expect, it } from 'vitest';
import { newUuid } from '#shared/ids.ts';
import { specOf } from '#test/support/workloads/workload-fixture.ts';
import { newInstanceKey, parseInstanceKey } from '../processes/instance-key.ts';
import { parseSocketTable } from '../processes/listening-ports.ts';
import { planRestartDelay } from '../processes/restart-delay.ts';
import { describeEnd } from './programs.ts';
import { planRoute } from './route-plan.ts';
import { describeMissedBoot, findOtherPort, patienceWith, planEnvironment } from './supervision.ts';

describe('supervision', () => {
  it('waits 1, 2, 4 … seconds before it starts a crashed instance again, never more than 60', () => {
    expect([1, 2, 3, 4, 5, 6, 7, 8, 500].map(planRestartDelay)).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
  });

  it('gives PORT to instances that have one, and does not let an app variable replace it', () => {
    const spec = specOf(newUuid(), 4, 'image', { config: { PORT: '80', COLOR: 'green' } });
    const environment = planEnvironment(spec, { key: 'k', type: 'web', index: 2, port: 23_456 });
    expect(environment).toMatchObject({
      PORT: '23456',
      COLOR: 'green',
      PAAS_RELEASE: 'v4',
      PAAS_PROCESS: 'web.2',
      DYNO: 'web.2',
    });
    const { PORT: _port, ...config } = spec.config;
    expect(planEnvironment({ ...spec, config }, { key: 'k', type: 'worker', index: 1, port: 0 })).not.toHaveProperty('PORT');
  });

  it('names the cause of a missed start and what to change', () => {
    expect(describeMissedBoot('did not listen', 5000, 60, [])).toBe(
      'did not listen on PORT (5000) within 60 s; it must bind to the port in the variable PORT',
    );
    expect(describeMissedBoot('did not listen', 5000, 60, [{ address: 'any', port: 3000 }])).toContain(
      'listens on port 3000, not on PORT (5000)',
    );
    expect(describeMissedBoot('did not listen', 5000, 60, [{ address: 'an IPv6 address', port: 5000 }])).toContain('0.0.0.0');
    expect(describeMissedBoot('did not listen', 5000, 60, [{ address: 'any', port: 5000 }])).toMatch(
      /^did not listen .* within 60 s/,
    );
    expect(describeMissedBoot('answered 503 to GET /up', 5000, 60, [])).toBe('answered 503 to GET /up within 60 s');
  });

  it.each([
    ['a server that ignores PORT', [{ address: 'any', port: 3000 }], 1, 1],
    ['PORT where no traffic arrives', [{ address: '127.0.0.1', port: 5000 }], 1, undefined],
    ['any other port', [{ address: 'any', port: 12_345 }], 3, 3],
    ['a port of metrics', [{ address: 'any', port: 9090 }], undefined, undefined],
    [
      'a debugger beside PORT',
      [
        { address: 'any', port: 9229 },
        { address: 'any', port: 5000 },
      ],
      1,
      undefined,
    ],
    ['nothing', [], undefined, undefined],
  ])('is patient with an instance that listens on %s', (_name, listeners, byConnecting, byPath) => {
    expect([patienceWith(5000, listeners, false), patienceWith(5000, listeners, true)]).toEqual([byConnecting, byPath]);
  });

  it.each([
    ['PORT', [5000, 3000], [], undefined],
    ['the only other port', [12_345], [], { port: 12_345, patience: 3 }],
    ['the only usual one', [3000], [], { port: 3000, patience: 1 }],
    ['the usual one of several', [12_345, 3000], [], { port: 3000, patience: 1 }],
    ['one that the image declares', [3000, 4000, 9090], [9090], { port: 9090, patience: 0 }],
    ['not one of metrics or a debugger', [9229, 9090], [], undefined],
    ['one beside metrics', [9090, 7000], [], { port: 7000, patience: 3 }],
    ['none of two that are usual', [3000, 8080], [], undefined],
    ['none of two that are not', [7000, 7001], [], undefined],
    ['nothing', [], [3000], undefined],
  ])('serves an instance at %s', (_name, ports, exposed, other) => {
    const listeners = ports.map((port) => ({ address: 'any', port }));
    expect(findOtherPort(5000, listeners, exposed)).toEqual(other);
  });

  it('serves an instance at its port on all addresses, not at that of a helper on the loopback', () => {
    const listeners = [
      { address: '127.0.0.1', port: 8080 },
      { address: 'any', port: 12_345 },
    ];
    expect(findOtherPort(5000, listeners, [])?.port).toBe(12_345);
    expect(findOtherPort(5000, listeners.slice(0, 1), [])?.port).toBe(8080);
  });

  it('describes how a process ended', () => {
    const mebibytes = 512 * 1024 * 1024;
    expect(describeEnd({ code: 1, outOfMemory: false }, mebibytes)).toBe('exited with code 1');
    expect(describeEnd({ code: 137, outOfMemory: true }, mebibytes)).toBe('ran out of memory (512 MiB) and was killed');
    expect(describeEnd({ code: 143, outOfMemory: false }, mebibytes)).toBe('was ended by signal 15');
    expect(describeEnd({ code: undefined, outOfMemory: false }, mebibytes)).toBe('ended');
  });

  it('parses type, index and release out of a key, and refuses what is not a key', () => {
    const key = newInstanceKey('web-api', 12, 345);
    expect(parseInstanceKey(key)).toEqual({ type: 'web-api', index: 12, releaseVersion: 345 });
    expect(newInstanceKey('web-api', 12, 345)).not.toBe(key);
    for (const other of ['web.1', '../x.1.v1.000000000000', `${key}.tmp`, '']) expect(parseInstanceKey(other)).toBeUndefined();
  });

  it('reads listeners out of the kernel table, and only those of the given sockets', () => {
    const table = [
      '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
      '   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0 100 0 0 10 0',
      '   1: 00000000:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 222 1 0 100 0 0 10 0',
      '   2: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 111 1 0 100 0 0 10 0',
    ].join('\n');
    expect(parseSocketTable(table, new Set(['111']))).toEqual([{ address: '127.0.0.1', port: 8080 }]);
    expect(parseSocketTable(table, new Set(['222']))).toEqual([{ address: 'any', port: 3000 }]);
  });

  it('routes to web instances that are up, of releases with weight, and to nothing else', () => {
    const instance = (key: string, change: object) => ({
      key,
      type: 'web',
      state: 'up' as const,
      port: 1000,
      releaseVersion: 1,
      ...change,
    });
    const route = planRoute({
      appId: newUuid(),
      appName: 'hello',
      hosts: ['hello.apps.localhost'],
      weights: new Map([
        [1, 75],
        [2, 25],
        [3, 0],
        [4, 0],
      ]),
      instances: [
        instance('a', {}),
        instance('b', { releaseVersion: 2 }),
        instance('c', { releaseVersion: 3 }),
        instance('d', { type: 'worker', port: 0 }),
        instance('e', { state: 'starting' }),
        instance('f', { state: 'stopping' }),
        instance('g', { state: 'crashed' }),
      ],
    });
    expect(route.backends.map(({ weight, instances }) => [weight, instances.map(({ key }) => key)])).toEqual([
      [75, ['a']],
      [25, ['b']],
      [0, ['c']],
    ]);
  });
});
