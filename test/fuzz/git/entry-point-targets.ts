import { gzipSync } from 'node:zlib';
import { readRequestBody } from '#api/git/git-body.ts';
import { readToken } from '#api/git/read-token.ts';
import { GitFault } from '#shared/git/git-fault.ts';
import { parseGitAddress, parseGitCommand, parseGitProtocol } from '#shared/git/protocol/git-request.ts';
import { assertTrue, words } from '#test/fuzz/git/assert-true.ts';
import type { FuzzTarget } from '#test/fuzz/git/engine.ts';

const appName = /^[A-Za-z0-9][A-Za-z0-9-]{0,99}$/;
const protocol = /^version=[012]$/;

/** The command of an SSH client, and the one variable that it may set, one line each. */
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
    assertTrue(version === undefined || protocol.test(version), 'a protocol is one of three');
    const command = parseGitCommand(text);
    if (command === undefined) throw new GitFault('not a command');
    assertTrue(appName.test(command.appName), `${JSON.stringify(command.appName)} is the name of an app`);
    assertTrue(command.service === 'receive-pack' || command.service === 'upload-pack', 'a service is one of two');
  },
};

/** The first line and two headers of an HTTP request. */
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
    assertTrue(protocol.test(parseGitProtocol(version) ?? 'version=0'), 'a protocol is one of three');
    const token = readToken(authorization);
    assertTrue(token === undefined || token.length <= authorization.length, 'the token was sent');
    const base = 'http://localhost';
    if (!URL.canParse(path, base)) throw new GitFault('not an address');
    const address = parseGitAddress(method, new URL(path, base));
    if (address === undefined) throw new GitFault('not of git');
    assertTrue(appName.test(address.appName), `${JSON.stringify(address.appName)} is the name of an app`);
    assertTrue(
      (address.step === 'advertise') === (method === 'GET') && (method === 'GET' || method === 'POST'),
      'a step has its method',
    );
  },
};

const mostUnpacked = 1024 * 1024;

/** The body of a request. The first byte says whether it claims to be compressed. */
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
      assertTrue(chunk.length <= 128 * 1024, 'a compressed body is read in pieces');
      bytes += chunk.length;
      if (bytes > mostUnpacked) throw new GitFault('the reader stops here');
    }
    assertTrue(packed || bytes === body.length, 'a body without compression is not changed');
  },
};

/** Parsers of the entry points. */
export const entryPointTargets: readonly FuzzTarget[] = [sshCommand, httpAddress, httpBody];
