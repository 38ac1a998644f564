import { gzipSync } from 'node:zlib';
import { readRequestBody } from '#api/git/git-body.ts';
import { readToken } from '#api/git/read-token.ts';
import { GitFault } from '#shared/git/git-fault.ts';
import { parseGitAddress, parseGitCommand, parseGitProtocol } from '#shared/git/protocol/git-request.ts';
import type { FuzzTarget } from '#test/fuzz/git/engine.ts';
import { hold, words } from '#test/fuzz/git/expectations.ts';

const appName = /^[A-Za-z0-9][A-Za-z0-9-]{0,99}$/;
const protocol = /^version=[012]$/;

/** What an SSH client asks to run, and the one variable it may set: a line each. */
const sshCommand: FuzzTarget = {
  name: 'ssh-command',
  seeds: [
    "git-receive-pack 'hello.git'\nversion=2",
    'git upload-pack /hello\nversion=1:version=2',
    "git-upload-pack '/a-b/'\n",
  ].map((text) => Buffer.from(text)),
  words: words(
    "'",
    ' ',
    '/',
    '.git',
    '..',
    'git-receive-pack',
    '-',
    '--',
    '\n',
    '\0',
    ';',
    '$(x)',
    '`',
    'version=',
    ':',
    '\\',
    '\u200c',
  ),
  run(input) {
    const [text = '', variable = ''] = input.toString('utf8').split('\n', 2);
    const version = parseGitProtocol(variable);
    hold(version === undefined || protocol.test(version), 'a protocol is one of three');
    const command = parseGitCommand(text);
    if (command === undefined) throw new GitFault('not a command');
    hold(appName.test(command.appName), `${JSON.stringify(command.appName)} is the name of an app`);
    hold(command.service === 'receive-pack' || command.service === 'upload-pack', 'a service is one of two');
  },
};

/** The line and the two headers that say what an HTTP request is about. */
const httpAddress: FuzzTarget = {
  name: 'http-address',
  seeds: [
    'GET\n/hello.git/info/refs?service=git-upload-pack\nversion=2\nBasic eDp0b2tlbg==',
    'POST\n/hello.git/git-receive-pack\nversion=1:version=2\nBearer abc.def-ghi_j',
    'POST\n//evil/hello.git/../git-upload-pack?service=git-receive-pack&service=x\n\nbasic Og==',
  ].map((text) => Buffer.from(text)),
  words: words(
    '\n',
    '/',
    '%2F',
    '%2e%2e',
    '..',
    '.git',
    '?',
    '&',
    '#',
    'service=',
    ':',
    '=',
    'Basic ',
    'Bearer ',
    '\\',
    '@',
    '\0',
    '+',
  ),
  run(input) {
    const [method = '', path = '', version = '', authorization = ''] = input.toString('latin1').split('\n', 4);
    hold(protocol.test(parseGitProtocol(version) ?? 'version=0'), 'a protocol is one of three');
    const token = readToken(authorization);
    hold(token === undefined || token.length <= authorization.length, 'a token was sent');
    const base = 'http://localhost';
    if (!URL.canParse(path, base)) throw new GitFault('not an address');
    const address = parseGitAddress(method, new URL(path, base));
    if (address === undefined) throw new GitFault('not of git');
    hold(appName.test(address.appName), `${JSON.stringify(address.appName)} is the name of an app`);
    hold(
      (address.step === 'advertise') === (method === 'GET') && (method === 'GET' || method === 'POST'),
      'a step has its method',
    );
  },
};

const mostUnpacked = 1024 * 1024;

/** The body of a request as the client has packed it. The first byte says how it claims to be. */
const httpBody: FuzzTarget = {
  name: 'http-body',
  share: 0.5,
  batch: 100,
  seeds: [
    Buffer.concat([Buffer.from('1'), gzipSync('0032want aaaaaaaaaaaaaaaa\n0000'.repeat(20))]),
    Buffer.concat([Buffer.from('1'), gzipSync('a'), gzipSync('b')]),
    Buffer.concat([Buffer.from('1'), gzipSync(Buffer.alloc(256 * 1024))]),
    Buffer.from('00000'),
  ],
  words: [Buffer.from([0x1f, 0x8b, 8, 0]), Buffer.from([0x1f, 0x8b, 8, 0xff]), gzipSync('x'), Buffer.from([0, 0, 0xff, 0xff])],
  async run(input) {
    const packed = (input[0] ?? 0) % 2 === 1;
    const body = input.subarray(1);
    const request = new Request('http://localhost/', {
      method: 'POST',
      body: new Uint8Array(body),
      headers: packed ? { 'content-encoding': 'gzip' } : {},
    });
    let bytes = 0;
    for await (const chunk of readRequestBody(request)) {
      hold(chunk.length <= 128 * 1024, 'what is packed comes in pieces');
      bytes += chunk.length;
      if (bytes > mostUnpacked) throw new GitFault('the reader wants no more');
    }
    hold(packed || bytes === body.length, 'a body that is not packed stays as it is');
  },
};

export const doorTargets: readonly FuzzTarget[] = [sshCommand, httpAddress, httpBody];
