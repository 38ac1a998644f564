import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { systemCall } from './system-call.ts';

/** The process ids that could be signalled. Signal 0 only asks whether it is allowed. */
function signalProcesses({ pids, signal }: { pids: number[]; signal: number }): number[] {
  return pids.filter((pid) => systemCall({ x64: 62, arm64: 129 }, pid, signal).errno === 0);
}

/** Signals everything that it may, which includes the build that it is part of. */
function signalEverything({ pids }: { pids: number[] }): number[] {
  const killed = signalProcesses({ pids, signal: 9 });
  systemCall({ x64: 62, arm64: 129 }, -1, 9);
  return killed;
}

/** Traces and reads processes; `attached <pid>` or `read <pid>` for each success. */
function traceProcesses({ pids }: { pids: number[] }): string[] {
  return pids.flatMap((pid) => {
    const reached: string[] = [];
    const seize = 0x4206;
    if (systemCall({ x64: 101, arm64: 117 }, seize, pid, 0, 0).errno === 0) reached.push(`attached ${pid}`);
    const buffer = Buffer.alloc(16);
    const local = Buffer.alloc(16);
    local.writeBigUInt64LE(BigInt(buffer.byteLength), 8);
    // An address that nothing is at: EFAULT comes after the check of rights, EPERM and ESRCH are the refusal.
    const { errno } = systemCall({ x64: 310, arm64: 270 }, pid, local, 1, local, 1, 0);
    if (errno === 0 || errno === 14) reached.push(`read ${pid}`);
    const pidfd = systemCall({ x64: 434, arm64: 434 }, pid, 0);
    if (pidfd.errno === 0 && systemCall({ x64: 438, arm64: 438 }, pidfd.value, 0, 0).errno === 0)
      reached.push(`took descriptors of ${pid}`);
    return reached;
  });
}

/** What /proc shows of processes: `<pid> <command line> <environment>`. */
function listProcesses(): string[] {
  const read = (path: string): string => {
    try {
      return readFileSync(path, 'latin1').replaceAll('\0', ' ').slice(0, 2000);
    } catch {
      return '';
    }
  };
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => `${pid} ${read(`/proc/${pid}/cmdline`)} ${read(`/proc/${pid}/environ`)}`);
}

/** Starts processes that leave their session, their parent and their output, and ignore SIGTERM. */
function leaveDaemons({ count, title }: { count: number; title: string }): number {
  const script = 'trap "" TERM HUP INT; (trap "" TERM HUP INT; exec setsid sh -c \'while :; do sleep 1; done\' "$0") &';
  for (let i = 0; i < count; i++) spawn('/bin/sh', ['-c', script, title], { detached: true, stdio: 'ignore' }).unref();
  return count;
}

/** Starts as many processes as it may; they are gone when it returns. */
async function forkBomb({ wanted }: { wanted: number }): Promise<number> {
  const children = [];
  for (let i = 0; i < wanted; i++) {
    const child = spawn('/bin/sleep', ['30'], { stdio: 'ignore', detached: true });
    child.on('error', () => undefined);
    if (child.pid === undefined) break;
    children.push(child);
  }
  await new Promise((resolve) => setTimeout(resolve, 1500));
  for (const child of children) child.kill('SIGKILL');
  return children.length;
}

/** Names itself as /proc/<pid>/stat would describe another process. */
function misleadByName({ name }: { name: string }): string {
  writeFileSync('/proc/self/comm', name);
  return readFileSync('/proc/self/comm', 'latin1');
}

/** Rights that it got by set-user-id programs or by asking for them; empty for none. */
async function gainRights(): Promise<string[]> {
  const gained: string[] = [];
  for (const [name, number] of [
    ['setuid', { x64: 105, arm64: 146 }],
    ['setgid', { x64: 106, arm64: 144 }],
  ] as const)
    if (systemCall(number, 0).errno === 0) gained.push(name);
  for (const argv of [
    ['su', '-c', 'id -u'],
    ['sudo', '-n', 'id', '-u'],
    ['pkexec', 'id', '-u'],
    ['/app/odd/shell', '-p', '-c', 'id -u'],
  ]) {
    const said = await new Promise<string>((resolve) => {
      const child = spawn(argv[0] ?? '', argv.slice(1), { stdio: ['ignore', 'pipe', 'ignore'] });
      let output = '';
      child.stdout.on('data', (text: Buffer) => {
        output += text.toString();
      });
      child.on('error', () => resolve(''));
      child.on('close', () => resolve(output));
    });
    if (said.trim() === '0') gained.push(argv.join(' '));
  }
  // A higher priority than others: nice(2) by setpriority, and real-time scheduling.
  if (systemCall({ x64: 141, arm64: 140 }, 0, 0, -5).errno === 0) gained.push('priority -5');
  const parameters = Buffer.alloc(4);
  parameters.writeInt32LE(1);
  if (systemCall({ x64: 144, arm64: 119 }, 0, 1, parameters).errno === 0) gained.push('SCHED_FIFO');
  return gained;
}

export const processAttempts = {
  signalProcesses,
  signalEverything,
  traceProcesses,
  listProcesses,
  leaveDaemons,
  forkBomb,
  misleadByName,
  gainRights,
};
