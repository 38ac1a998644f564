import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { type ApiProxy, startApiProxy } from './cluster/start-api-proxy.ts';

const main = fileURLToPath(new URL('./cluster/leader-main.ts', import.meta.url));
const replacementSeconds = 15;

interface Contender {
  child: ChildProcess;
  /** 'waits', 'leads' and 'stops', each with its time. */
  events: [string, number][];
}

describe('several control planes on a real cluster', () => {
  let name: string;
  let proxy: ApiProxy;
  const contenders: Contender[] = [];
  beforeEach(async () => {
    name = `worker-${crypto.randomUUID()}`;
    proxy = await startApiProxy(inject('kubeconfig'), name);
  });
  afterEach(async () => {
    for (const { child } of contenders.splice(0)) {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    }
    await proxy.close();
  });
  function start(kubeconfig = inject('kubeconfig')): Contender {
    const child = spawn(process.execPath, [main, kubeconfig, name], { stdio: ['ignore', 'pipe', 'inherit'] });
    const events: [string, number][] = [];
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [word = '', at = ''] = line.split(' ');
      events.push([word, Number(at)]);
    });
    contenders.push({ child, events });
    return { child, events };
  }
  const leaders = (): Contender[] =>
    contenders.filter(
      ({ child, events }) => events.at(-1)?.[0] === 'leads' && child.signalCode === null && child.exitCode === null,
    );
  async function onlyLeader(): Promise<Contender> {
    await expect.poll(leaders, { timeout: 60_000, interval: 50 }).toHaveLength(1);
    return leaders()[0] as Contender;
  }
  const timeOf = ({ events }: Contender, word: string): number => events.find(([each]) => each === word)?.[1] ?? Number.NaN;

  it('one leads; the next one within 15 s when it is killed, and at once when it is stopped', async () => {
    for (let count = 0; count < 4; count += 1) start();
    await expect.poll(() => contenders.every(({ events }) => events.length > 0), { timeout: 60_000 }).toBe(true);
    const times: number[] = [];
    for (let round = 0; round < 2; round += 1) {
      const leader = await onlyLeader();
      const killedAt = Date.now();
      leader.child.kill('SIGKILL');
      await once(leader.child, 'exit');
      times.push((timeOf(await onlyLeader(), 'leads') - killedAt) / 1000);
    }
    const last = await onlyLeader();
    const stoppedAt = Date.now();
    last.child.kill('SIGTERM');
    const afterStop = await (async () => {
      await once(last.child, 'exit');
      return (timeOf(await onlyLeader(), 'leads') - stoppedAt) / 1000;
    })();
    process.stderr.write(`seconds until the next leader: killed ${times.join(', ')}; stopped ${afterStop}\n`);
    for (const time of times) expect(time).toBeLessThan(replacementSeconds);
    expect(afterStop).toBeLessThan(6);
  });

  it('a leader that the API server is cut off from stops before another one begins', async () => {
    const first = start(proxy.kubeconfig);
    await onlyLeader();
    const second = start();
    await expect.poll(() => second.events.length, { timeout: 60_000 }).toBe(1);
    proxy.fault = () => ({ cut: true });
    await expect.poll(() => second.events.at(-1)?.[0], { timeout: 30_000 }).toBe('leads');
    expect(timeOf(first, 'stops')).toBeLessThan(timeOf(second, 'leads'));
  });
});
