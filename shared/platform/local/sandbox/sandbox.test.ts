import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { planSandbox, type SandboxHost, type SandboxInputs, type SandboxPlan, type SandboxSpec } from './sandbox.ts';
import { launchScript } from './sandbox-launch.ts';
import { layerDescriptor } from './sandbox-layer.ts';
import { seccompFilter } from './sandbox-seccomp.ts';

const spec: SandboxSpec = {
  id: 'web.1',
  uid: 0x7000_0001,
  argv: ['/bin/sh', '-c', 'node server.js'],
  env: { SECRET: 'canary-7f3a', PATH: '/app/bin' },
  cwd: '/app',
  mounts: [{ source: '/data/images/a', target: '/app' }],
  tmp: { bytes: 1000 },
  limits: { memoryBytes: 100, processes: 10, fileBytes: 50 },
  dieWithParent: false,
};
const host: SandboxHost = {
  root: true,
  uid: 0,
  gid: 0,
  bwrap: '/usr/bin/bwrap',
  systemDirectories: [{ path: '/bin', linkTo: 'usr/bin' }],
  etc: [],
  hidden: [
    { path: '/usr/local/etc', isDirectory: true },
    { path: '/proc/cmdline', isDirectory: false },
  ],
  limitedBy: 'rlimit',
  layerDirectory: '/data/layer',
};
const inputs: SandboxInputs = {
  groups: [],
  filter: new Uint8Array(),
  names: { hosts: '127.0.0.1 localhost\n', resolvers: 'nameserver 192.0.2.53\n' },
  volumeRoots: ['/data/volumes'],
};
const dataOf = ({ descriptors }: SandboxPlan, at: number): string => {
  const data = descriptors[at];
  return typeof data === 'string' ? data : '';
};
const options = (changes: Partial<SandboxSpec>, on = host): readonly string[] =>
  dataOf(planSandbox({ ...spec, ...changes }, on, inputs), 0).split('\0');

describe('the plan of a sandbox', () => {
  it('has no variable of the code and no host path in an argument, nor in the environment of a privileged program', () => {
    const { command, args, env } = planSandbox(spec, host, inputs);
    const visible = JSON.stringify([command, args, env]);
    expect(visible).not.toContain('canary-7f3a');
    expect(visible).not.toContain('/data/images');
    expect(Object.keys(env)).toEqual(['PATH']);
  });

  it("becomes the app's own user before the code's shell starts, as root", () => {
    const { args } = planSandbox(spec, host, inputs);
    const words = args.join(' ');
    expect(words).toMatch(
      /setpriv --reuid 1879048193 --regid 1879048193 --clear-groups .*--bounding-set=-all --no-new-privs -- .*prlimit .*\/bin\/sh \/run/,
    );
  });

  it('creates a user namespace and forbids further ones, as an ordinary user', () => {
    const words = options({}, { ...host, root: false, uid: 1000, gid: 1000 });
    expect(words).toEqual(expect.arrayContaining(['--unshare-user', '--disable-userns']));
    expect(planSandbox(spec, { ...host, root: false }, inputs).args.join(' ')).not.toContain('setpriv');
  });

  it('mounts read-only unless a mount is writable, and makes its own root read-only', () => {
    const words = options({
      mounts: [
        { source: '/a', target: '/app' },
        { source: '/b', target: '/cache', writable: true },
      ],
    });
    expect(words.join(' ')).toContain('--ro-bind /a /app --bind /b /cache');
    expect(words.join(' ')).toContain('--remount-ro /');
  });

  it('shows a layer instead of the lower directory, mounted outside before any code runs', () => {
    const layer = { source: '/data/images/b', target: '/app', bytes: 4096 };
    const plan = planSandbox({ ...spec, mounts: [], layer }, host, inputs);
    const { args, descriptors } = plan;
    expect(dataOf(plan, 0).replaceAll('\0', ' ')).toContain('--bind /data/layer/app /app');
    expect(args.join(' ')).toMatch(/unshare --mount .*bwrap --args 3/s);
    expect(descriptors[layerDescriptor - 3]).toBe(
      '/data/layer\n/data/images/b\n1879048193\nsize=4096,nr_inodes=4\nredirect_dir=on\n/data/volumes\n',
    );
    expect(args.join(' ')).not.toContain('/data');
  });

  it('ends with the platform only where the spec says so', () => {
    expect(options({ dieWithParent: true })).toContain('--die-with-parent');
    expect(options({ dieWithParent: false })).not.toContain('--die-with-parent');
  });

  it('limits memory per process only where there are no control groups', () => {
    const limited = planSandbox(spec, host, inputs).args;
    expect(limited).toEqual(expect.arrayContaining(['--nproc=10', '--data=1073741924', '--fsize=50']));
    const grouped = planSandbox(spec, host, { ...inputs, groups: ['/sys/fs/cgroup/x/cgroup.procs'] }).args;
    expect(grouped).toContain('/sys/fs/cgroup/x/cgroup.procs');
    expect(grouped).toContain('--fsize=50');
    expect(grouped.join(' ')).not.toMatch(/--nproc|--data/);
  });
});

describe('the plan of a container', () => {
  const users = { root: 0x7000_0001, first: 0x1001_0000 };
  const image = { kind: 'image', users, root: '/image', uid: 1000, gid: 1001 } as const;
  const containerInputs = { ...inputs, container: { namespace: { fd: 77 }, filter: new Uint8Array([1]) } };
  const plan = planSandbox(
    {
      ...spec,
      argv: ['/server'],
      cwd: '/srv',
      mounts: [],
      layer: { source: '/data/images/b', target: '/image', bytes: 4096 },
      container: image,
    },
    host,
    containerInputs,
  );

  it('enters the user namespace of the app, and becomes its root instead of a user of the host', () => {
    expect(plan.descriptors).toContainEqual({ fd: 77 });
    expect(dataOf(plan, 0).split('\0')).toEqual(expect.arrayContaining(['--userns2', '--seccomp']));
    expect(plan.args.join(' ')).toMatch(/setpriv --reuid 0 --regid 0 --clear-groups -- .*prlimit/);
  });

  it('runs the program with the root directory, the user and the directory of the image, behind the strict filter', () => {
    expect(plan.args.join(' ')).toContain('nsenter --root=/image --wdns=/srv --setuid=1000 --setgid=1001 --no-fork -- /server');
    const inner = plan.descriptors.findIndex(
      (data) => typeof data === 'string' && data.includes('--seccomp\0') && data.includes('canary'),
    );
    const words = dataOf(plan, inner).split('\0');
    expect(plan.descriptors[Number(words[words.indexOf('--seccomp') + 1]) - 3]).toBe(inputs.filter);
    expect(words).not.toContain('CAP_SYS_ADMIN');
  });

  it('has no variable of the code in an argument, nor in the environment of a program that sets it up', () => {
    expect(JSON.stringify([plan.command, plan.args, plan.env])).not.toContain('canary-7f3a');
    const scripts = plan.descriptors.filter((data) => typeof data === 'string').filter((text) => text.includes('exec "$@"'));
    expect(scripts.join('\n')).not.toContain('canary-7f3a');
  });
});

describe('the files of a sandbox', () => {
  it.each([undefined, { source: '/data/images/b', target: '/opt/b', bytes: 4096 }])(
    'are passed by the descriptors that the options name (layer: %j)',
    (layer) => {
      const plan = planSandbox({ ...spec, ...(layer === undefined ? {} : { layer }) }, host, inputs);
      const words = dataOf(plan, 0).split('\0');
      const textOf = (target: string): string => dataOf(plan, Number(words[words.indexOf(target) - 1]) - 3);
      expect(textOf('/etc/passwd')).toMatch(/^root:.*\napp:x:1879048193:/);
      expect(textOf('/etc/hosts')).toBe('127.0.0.1 localhost\n');
      expect(textOf('/etc/resolv.conf')).toBe('nameserver 192.0.2.53\n');
      expect(textOf('/run/paas/launch')).toContain('canary-7f3a');
    },
  );

  it("cover what shows the operator's settings and facts about the machine", () => {
    expect(options({}).join(' ')).toContain(
      '--tmpfs /usr/local/etc --remount-ro /usr/local/etc --dev-bind /dev/null /proc/cmdline',
    );
  });
});

describe('the launch script', () => {
  it('passes every value unchanged', async () => {
    const env = { A: `it's "$HOME" \`id\` $(id) \\ \n new line`, B: '', C: 'ünï', D: "'; exit 1; '" };
    const script = launchScript(env);
    const { stdout } = await promisify(execFile)(
      '/bin/sh',
      ['-c', script, 'sh', process.execPath, '-p', 'JSON.stringify(process.env)'],
      { env: {} },
    );
    expect(JSON.parse(stdout)).toMatchObject(env);
  });

  it('starts nothing when it was cut short', async () => {
    const script = launchScript({ A: '1', B: '2' });
    const cutShort = script.slice(0, script.indexOf('exec'));
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', cutShort, 'sh', 'echo', 'started']);
    expect(stdout).toBe('');
  });

  it.each(['A-B', '1A', 'A B', 'A=B', '', 'A;id'])('refuses the name %j', (name) => {
    expect(() => launchScript({ [name]: 'x' })).toThrow('cannot be the name of a variable');
  });

  it('refuses a NUL', () => {
    expect(() => launchScript({ A: 'x\0y' })).toThrow('NUL');
  });
});

describe('the system call filter', () => {
  it.each(['x64', 'arm64'])('is a whole number of instructions that ends in a verdict, on %s', (architecture) => {
    const filter = seccompFilter(architecture);
    expect(filter.length % 8).toBe(0);
    expect(filter.length / 8).toBeLessThan(4096);
    const last = new DataView(filter.buffer).getUint16(filter.length - 8, true);
    expect(last).toBe(0x06);
  });

  it.each([
    ['read', 0, 'allowed'],
    ['mount', 165, 'EPERM'],
    ['unshare', 272, 'EPERM'],
    ['io_uring_setup', 425, 'EPERM'],
    ['clone3', 435, 'ENOSYS'],
    ['futex_waitv', 449, 'allowed'],
    ['removexattrat', 466, 'allowed'],
    ['open_tree_attr, which is newer than the filter', 467, 'ENOSYS'],
    ['a call that Linux will have one day', 1000, 'ENOSYS'],
    ['read by its other number', 0x4000_0000, 'ENOSYS'],
  ])('answers %s', (_, number, verdict) => {
    const answers: Record<number, string> = { 0x7fff_0000: 'allowed', 0x0005_0001: 'EPERM', 0x0005_0026: 'ENOSYS' };
    expect(answers[runFilter(seccompFilter('x64'), { 0: number, 4: 0xc000_003e })]).toBe(verdict);
  });

  it('ends a program that calls by the numbers of another processor', () => {
    expect(runFilter(seccompFilter('x64'), { 0: 0, 4: 0x4000_0003 })).toBe(0x8000_0000);
  });

  it('names the file to extend on a processor it does not know', () => {
    expect(() => seccompFilter('riscv64')).toThrow('sandbox-seccomp.ts');
  });
});

/** Runs a filter as the kernel does. @param data words of struct seccomp_data by their offsets; others are 0 @returns its verdict */
function runFilter(filter: Uint8Array, data: Readonly<Record<number, number>>): number {
  const program = new DataView(filter.buffer);
  let loaded = 0;
  for (let at = 0; ; at += 8) {
    const code = program.getUint16(at, true);
    const constant = program.getUint32(at + 4, true);
    if (code === 0x20) loaded = data[constant] ?? 0;
    else if (code === 0x06) return constant;
    else {
      const tests: Record<number, boolean> = {
        0x15: loaded === constant,
        0x25: loaded > constant,
        0x45: (loaded & constant) !== 0,
      };
      at += 8 * program.getUint8(at + (tests[code] === true ? 2 : 3));
    }
  }
}
