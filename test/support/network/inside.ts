/** Servers and connections of tests inside network namespaces. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Answers "hello" to every connection, on one address. */
const server = `require('node:net').createServer((socket) => socket.on('error', () => undefined).end('hello')).listen(Number(process.argv[2]), process.argv[1], () => console.log('up'))`;
/** Prints "open", or the error code, for a connection attempt. */
const probe = `const socket = require('node:net').connect({ host: process.argv[1], port: Number(process.argv[2]), timeout: 1000 });
socket.on('connect', () => { console.log('open'); process.exit(); });
socket.on('error', (error) => { console.log(error.code); process.exit(); });
socket.on('timeout', () => { console.log('timeout'); process.exit(); });`;

const children: ChildProcess[] = [];

/** Serves "hello" in a network namespace until `endServers`. */
export function serveInside(namespace: string, host: string, port: number): Promise<void> {
  const child = spawn('nsenter', [`--net=/run/netns/${namespace}`, process.execPath, '-e', server, host, String(port)]);
  children.push(child);
  return new Promise((resolve, reject) => {
    child.stdout.once('data', () => resolve());
    child.once('exit', (code) => reject(new Error(`the server exited with ${code}`)));
  });
}

/** @returns 'open', 'timeout' or the code of the error */
export async function probeInside(namespace: string, host: string, port: number): Promise<string> {
  const args = [`--net=/run/netns/${namespace}`, process.execPath, '-e', probe, host, String(port)];
  return (await run('nsenter', args)).stdout.trim();
}

/** What a server says that speaks first. */
export function readFromHost(host: string, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect({ host, port, timeout: 2000 });
    socket.on('data', (chunk) => {
      text += String(chunk);
    });
    socket.on('end', () => resolve(text));
    socket.on('error', reject);
    socket.on('timeout', () => reject(new Error('timeout')));
  });
}

/** Ends what `serveInside` has started. */
export function endServers(): void {
  for (const child of children) child.kill('SIGKILL');
}

/** A host of the test in a namespace of its own: `address` is its, `gateway` is this machine's end. */
export async function startHost(name: string, address: string, gateway: string): Promise<void> {
  await run('ip', ['netns', 'add', name]);
  await run('ip', ['link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name]);
  await run('ip', ['addr', 'add', `${gateway}/28`, 'dev', name]);
  await run('ip', ['link', 'set', name, 'up']);
  await run('ip', ['-n', name, 'addr', 'add', `${address}/28`, 'dev', 'eth0']);
  await run('ip', ['-n', name, 'link', 'set', 'eth0', 'up']);
  await run('ip', ['-n', name, 'route', 'add', 'default', 'via', gateway]);
  await run('sysctl', ['-qw', `net.ipv4.conf.${name}.forwarding=1`]);
}

/** Removes a host of the test. */
export async function stopHost(name: string): Promise<void> {
  await run('ip', ['link', 'delete', name]).catch(() => undefined);
  await run('ip', ['netns', 'delete', name]).catch(() => undefined);
}
