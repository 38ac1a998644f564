import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chown, mkdir, open, readdir, readFile, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import { isAlive, readDescendants } from '#shared/platform/local/processes/process-identity.ts';
import type { SandboxLimits, SandboxMount } from '#shared/platform/local/sandbox/sandbox.ts';
import type { SandboxLayer } from '#shared/platform/local/sandbox/sandbox-layer.ts';
import { openTestBuilds, type TestBuilds } from '#test/support/builds/test-builds.ts';

let builds: TestBuilds;
let ownApp: string;
let otherApp: string;
beforeAll(async () => {
  builds = await openTestBuilds();
  expect(builds.sandbox.problem).toBeUndefined();
  ownApp = join(builds.dataDir, 'images/own');
  otherApp = join(builds.dataDir, 'images/other');
  for (const directory of [ownApp, otherApp]) {
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, 'secret.txt'), 'canary-5b1c');
  }
  const uid = await builds.sandbox.ensureUid(appId);
  if (process.getuid?.() === 0) for (const path of [ownApp, join(ownApp, 'secret.txt')]) await chown(path, uid, uid);
});
afterAll(() => builds.stop());

const appId = newUuid<AppId>();
const mebibyte = 1024 * 1024;

interface Attempt {
  readonly limits?: Partial<SandboxLimits>;
  readonly env?: Readonly<Record<string, string>>;
  readonly mounts?: readonly SandboxMount[];
  /** Instead of the app's files themselves. */
  readonly layer?: SandboxLayer;
}

/** What tenants' code printed, stdout and stderr, and how it ended. */
async function attempt(
  script: string,
  { limits, env, mounts, layer }: Attempt = {},
): Promise<{ output: string; code: number; outOfMemory: boolean }> {
  const child = await builds.sandbox.spawn(
    {
      id: `hostile-${randomUUID()}`,
      uid: await builds.sandbox.ensureUid(appId),
      argv: ['/bin/sh', '-c', script],
      env: { PATH: '/opt/paas/node/bin:/usr/bin:/bin', ...env },
      cwd: '/app',
      mounts: [
        ...(layer === undefined ? [{ source: ownApp, target: '/app' }] : []),
        { source: process.execPath, target: '/opt/paas/node/bin/node' },
        ...(mounts ?? []),
      ],
      ...(layer === undefined ? {} : { layer }),
      tmp: { bytes: 8 * mebibyte },
      limits: { memoryBytes: 256 * mebibyte, processes: 64, fileBytes: 4 * mebibyte, ...limits },
      dieWithParent: true,
    },
    { stdout: 'pipe', stderr: 'pipe' },
  );
  try {
    const [out, error, { code }] = await Promise.all([text(child.stdout!), text(child.stderr!), child.exited]);
    return { output: out + error, code, outOfMemory: await builds.sandbox.ranOutOfMemory(child.record) };
  } finally {
    await builds.sandbox.end(child.record);
  }
}

describe('code in the sandbox reads nothing that is not its own', () => {
  it.each([
    ['the data directory', () => `ls -la ${builds.dataDir}`],
    ["another app's files", () => `cat ${otherApp}/secret.txt; cat /app/../other/secret.txt`],
    ["root's home", () => 'ls -A /root /root/.ssh /root/.npmrc'],
    ['homes, variable data and sockets of the host', () => 'ls -A /home /var /run/user /run/docker.sock /run/systemd'],
    ['passwords', () => 'cat /etc/shadow /etc/gshadow /etc/sudoers'],
    ['kernel memory and disks', () => 'cat /proc/kcore /dev/mem /dev/vda /dev/sda'],
    ['through a symlink of its own making', () => `ln -s ${otherApp} /tmp/link && cat /tmp/link/secret.txt`],
  ])('%s', async (_, script) => {
    const { output, code } = await attempt(script());
    expect(output).not.toContain('canary');
    expect(output.replaceAll(/^.*(No such file|cannot open|Permission denied|cannot access).*$/gm, '').trim()).toBe('');
    expect(code).not.toBe(0);
  });

  it("the platform's own environment, of which its init has nothing but PATH and PWD", async () => {
    const { output } = await attempt('tr "\\0" "\\n" < /proc/1/environ', { env: { OWN: 'canary' } });
    expect(output.match(/^\w+=/gm)?.filter((name) => name !== 'PATH=' && name !== 'PWD=') ?? []).toEqual([]);
  });

  it('the processes of anybody else', async () => {
    const { output } = await attempt(
      'cat /proc/[0-9]*/cmdline | tr "\\0" " "; echo; echo "count: $(ls -d /proc/[0-9]* | wc -l)"',
    );
    expect(output).not.toContain(builds.dataDir);
    expect(output).not.toContain('vitest');
    expect(Number(/^count: (\d+)$/m.exec(output)?.[1])).toBeLessThan(8);
  });
});

describe('code in the sandbox learns nothing about the machine', () => {
  it('neither the name of the host, nor its users, nor settings of the operator are in /etc', async () => {
    const { output } = await attempt('hostname; cat /etc/passwd /etc/group; find /etc -maxdepth 1 | sort');
    const words = output.split(/[\s:]+/);
    expect(words).not.toContain(hostname());
    const users = (await readFile('/etc/passwd', 'utf8')).split('\n').flatMap((line) => line.split(':')[0] || []);
    expect(users.filter((user) => user !== 'root' && words.includes(user))).toEqual([]);
    for (const file of ['npmrc', 'pip.conf', 'machine-id', 'hostname', 'fstab', 'ssh', 'gitconfig', 'shadow'])
      expect(output).not.toContain(`/etc/${file}\n`);
  });

  it.each([
    ["the kernel's command line", 'cat /proc/cmdline'],
    ["the kernel's symbols", 'cat /proc/kallsyms'],
    ['keys and uids of others', 'cat /proc/keys /proc/key-users'],
    ["others' locks on files", 'cat /proc/locks'],
    ['disks and interrupts', 'cat /proc/partitions /proc/diskstats /proc/interrupts'],
    ['global settings of the operator', 'cat /usr/local/etc/* /usr/etc/*'],
  ])('%s', async (_, script) => {
    const { output } = await attempt(script);
    expect(output.replaceAll(/^.*No such file.*$/gm, '').trim()).toBe('');
  });

  it("the kernel's log, network interfaces of the host and devices", async () => {
    const { output, code } = await attempt('dmesg || ls /sys/class/net || cat /dev/kmsg');
    expect(code).not.toBe(0);
    expect(output).toMatch(/not permitted/);
  });

  it('no socket of a family that leaves the network of the app, or that reaches into the kernel', async () => {
    const families = { AF_VSOCK: 40, AF_PACKET: 17, AF_ALG: 38, AF_KEY: 15, AF_BLUETOOTH: 31, AF_CAN: 29, AF_TIPC: 30 };
    const raw = ['socket.AF_INET, socket.SOCK_RAW, 1', 'socket.AF_INET6, socket.SOCK_RAW, 58'];
    const netlink = [2, 4, 6, 9, 12, 15, 16, 21].map((protocol) => `socket.AF_NETLINK, socket.SOCK_RAW, ${protocol}`);
    const tries = [...Object.values(families).map((family) => `${family}, socket.SOCK_STREAM, 0`), ...raw, ...netlink];
    const script = `import socket
for attempt in [${tries.map((words) => `(${words})`).join(', ')}]:
    try:
        socket.socket(*attempt)
        print('OPEN', attempt)
    except OSError as error:
        print(error.errno)
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
socket.socketpair()
print('done')`;
    const { output } = await attempt('/usr/bin/python3 -c "$SCRIPT"', { env: { SCRIPT: script } });
    expect(output).not.toContain('OPEN');
    expect(output.trim().split('\n')).toHaveLength(tries.length + 1);
    expect(output).toContain('done');
  });
});

describe('code in the sandbox changes nothing outside its own', () => {
  it.each([
    ['its image', 'touch /app/new || rm /app/secret.txt || echo x > /app/secret.txt'],
    ['the system', 'touch /usr/x || touch /bin/x || touch /etc/x || touch /x || touch /run/x'],
    [
      'the kernel',
      'echo x > /proc/sys/kernel/core_pattern || echo b > /proc/sysrq-trigger || echo 1 > /sys/fs/cgroup/pids/pids.max',
    ],
    ['its mounts', 'mount -t tmpfs none /app || mount -o remount,rw / || umount /app'],
    ['its namespaces', 'unshare -U true || unshare -m true || nsenter -t 1 -m true'],
    ['its user', 'chown 0 /tmp || setpriv --reuid 0 true || su -c true || sudo -n true'],
    ['its limits', 'prlimit --fsize=unlimited true || prlimit --core=unlimited true'],
  ])('%s', async (_, script) => {
    expect((await attempt(script)).code).not.toBe(0);
    expect(await readFile(join(ownApp, 'secret.txt'), 'utf8')).toBe('canary-5b1c');
  });

  it('has no rights and cannot get any', async () => {
    const { output } = await attempt('grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/self/status; id -u');
    expect(output).toMatch(/NoNewPrivs:\s1/);
    expect(output).toMatch(/Seccomp:\s2/);
    expect([...output.matchAll(/^Cap(?:Inh|Prm|Eff|Bnd|Amb):\s+([0-9a-f]+)$/gm)].map(([, set]) => BigInt(`0x${set}`))).toEqual([
      0n,
      0n,
      0n,
      0n,
      0n,
    ]);
    expect(output.trim().split('\n').at(-1)).not.toBe('0');
  });

  it('cannot have a variable of its own taken for one of ours', async () => {
    // Loaded by a program that still has rights, such a library would run with them.
    const { output, code } = await attempt('echo alive', {
      env: { LD_PRELOAD: '/app/evil.so', BASH_ENV: '/app/evil', ENV: '/app/evil' },
    });
    expect(code).toBe(0);
    expect(output.match(/evil\.so/g)?.length ?? 0).toBeLessThanOrEqual(1);
  });
});

describe('code in the sandbox takes no more room than it is given', () => {
  it.each([
    ['in shared memory', 'head -c 100M /dev/zero > /dev/shm/file'],
    ['beside the devices', 'head -c 1 /dev/zero > /dev/file'],
  ])('%s', async (_, script) => {
    const { output, code } = await attempt(script, { limits: { fileBytes: 200 * mebibyte, memoryBytes: 512 * mebibyte } });
    expect(code, output).not.toBe(0);
  });

  it('and has what programs expect of /dev', async () => {
    const { output, code } = await attempt('echo x > /dev/null && head -c 1 /dev/urandom > /dev/shm/file && echo fine');
    expect([output, code]).toEqual(['fine\n', 0]);
  });
});

describe('code in a layer', () => {
  const layered = (script: string, bytes = 4 * mebibyte) => attempt(script, { layer: { source: ownApp, target: '/app', bytes } });

  it('writes, renames and removes what is beside it, and none of it reaches the image or another instance', async () => {
    const work = 'mkdir -p deep/er; echo new > deep/er/file; mv secret.txt moved; cat moved deep/er/file';
    const both = await Promise.all([layered(`${work}; ls`), layered(`${work}; ls`)]);
    for (const { output, code } of both) {
      expect(output).toBe('canary-5b1cnew\ndeep\nmoved\n');
      expect(code).toBe(0);
    }
    expect((await layered('ls')).output).toBe('secret.txt\n');
    expect(await readdir(ownApp)).toEqual(['secret.txt']);
    expect(await readFile(join(ownApp, 'secret.txt'), 'utf8')).toBe('canary-5b1c');
  });

  it('writes no more than it may, in bytes and in files', async () => {
    const { output } = await layered(
      'exec 2>&1; for i in 1 2 3; do head -c 3000000 /dev/zero > $i; done; cat 1 2 3 | wc -c',
      6 * mebibyte,
    );
    expect(output).toContain('No space left');
    expect(Number(output.trim().split('\n').at(-1))).toBeLessThanOrEqual(6 * mebibyte);
    expect((await layered('i=0; while touch f$i; do i=$((i+1)); done', 65_536)).output).toContain('No space left');
  });

  it('keeps no more rights than code without one, and leaves no mount behind', async () => {
    const { code } = await layered('mount -o remount,rw / || umount /app || unshare -m true || touch /usr/x || touch /x');
    expect(code).not.toBe(0);
    expect(await readFile('/proc/self/mounts', 'utf8')).not.toContain(`${builds.dataDir}/layer`);
    expect(await readdir(join(builds.dataDir, 'layer'))).toEqual([]);
  });
});

describe('what our own starter left open', () => {
  it('does not reach the sandbox', async () => {
    const script = new URL('../support/workloads/list-descriptors.ts', import.meta.url).pathname;
    const secret = await open(join(otherApp, 'secret.txt'));
    const stdio = Array.from({ length: 31 }, (_, at) => (at === 1 ? 'pipe' : at === 9 || at === 30 ? secret.fd : 'ignore'));
    const starter = spawn(process.execPath, [script, builds.dataDir], { stdio: stdio as 'pipe'[] });
    const printed = await text(starter.stdout!);
    await secret.close();
    expect(printed).toMatch(/^own: .*secret\.txt.*secret\.txt/m);
    expect(printed).toMatch(/^inside: .*\/dev\/null/m);
    expect(printed.split('inside: ')[1]).not.toContain('secret.txt');
  });
});

describe('code in the sandbox takes no more than its share', () => {
  it('a fork bomb runs into its limit and is gone at the end', async () => {
    const { output } = await attempt('bomb() { bomb | bomb & }; bomb 2>/dev/null; sleep 1; ls -d /proc/[0-9]* | wc -l', {
      limits: { processes: 32 },
    });
    expect(output).not.toMatch(/^\s*(3[3-9]|[4-9]\d|\d{3,})\s*$/m);
  });

  it('memory above the limit ends the process that takes it, and is reported as such', async () => {
    const { code, outOfMemory, output } = await attempt(
      'exec node -e "const all = []; for (;;) all.push(Buffer.alloc(16 << 20, 1))"',
    );
    expect(code).not.toBe(0);
    if (builds.sandbox.limitedBy !== 'rlimit') expect(outOfMemory).toBe(true);
    else expect(output).toMatch(/memory|allocation/i);
  });

  it.skipIf(process.getuid?.() !== 0)('all processes together stay within the memory limit', async () => {
    const { outOfMemory } = await attempt(
      'for i in 1 2 3 4; do node -e "Buffer.alloc(120 << 20, 1); setTimeout(() => {}, 1500)" & done; wait',
    );
    expect(outOfMemory).toBe(builds.sandbox.limitedBy !== 'rlimit');
  });

  it('/tmp and single files are limited in size', async () => {
    const { output } = await attempt(
      'head -c 5000000 /dev/zero > /tmp/file; stat -c %s /tmp/file; for i in 1 2 3 4; do head -c 3000000 /dev/zero > /tmp/$i; done; du -sm /tmp | cut -f1',
    );
    const numbers = output
      .split('\n')
      .filter((line) => /^\d+$/.test(line))
      .map(Number);
    expect(numbers[0]).toBeLessThanOrEqual(4 * mebibyte);
    expect(numbers[1]).toBeLessThanOrEqual(8);
  });
});

describe('the end of a sandbox', () => {
  it('takes along processes that left their parent, their session and their output', async () => {
    const child = await builds.sandbox.spawn(
      {
        id: `hostile-${randomUUID()}`,
        uid: await builds.sandbox.ensureUid(appId),
        argv: [
          '/bin/sh',
          '-c',
          'for i in 1 2 3; do setsid -f sleep 600 < /dev/null > /dev/null 2>&1; done; trap "" TERM INT HUP; echo ready; sleep 600',
        ],
        env: { PATH: '/usr/bin:/bin' },
        cwd: '/',
        mounts: [],
        tmp: { bytes: mebibyte },
        limits: { memoryBytes: 256 * mebibyte, processes: 64, fileBytes: mebibyte },
        dieWithParent: false,
      },
      { stdout: 'pipe', stderr: 'pipe' },
    );
    await new Promise((resolve) => child.stdout?.once('data', resolve));
    const inside = await readDescendants(child.record.init.pid);
    expect(inside.length).toBeGreaterThanOrEqual(4);
    await builds.sandbox.end(child.record);
    await child.exited;
    expect(await isAlive(child.record.init)).toBe(false);
    for (const pid of inside) expect(await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).toBe('');
  });
});
