import { readdir, readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { visit } from '#test/support/platform/user.ts';
import type { Attacker } from '../attacked-platform.ts';
import { byClient, type Claim, nothingReached, type Probe } from '../probe.ts';

/** What a server answers to bytes, up to the end of the connection or some time without an answer. */
function sendRaw(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect({ host: '127.0.0.1', port, timeout: 1500 }, () => socket.write(bytes));
    const end = (): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.on('data', (data) => {
      answer += data.toString('latin1');
    });
    socket.on('error', end).on('close', end).on('timeout', end);
  });
}

/** Opens connections, does something, and closes them. */
async function besides<T>(open: () => Socket | TLSSocket, count: number, work: () => Promise<T>): Promise<T> {
  const sockets = Array.from({ length: count }, () => open().on('error', () => undefined));
  await sleep(500);
  try {
    return await work();
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

/**
 * Where an attacker's connections come from. The visitors of others come from other addresses: what one address may open is limited, and
 * those who share it with an attacker notice that.
 */
function addressOf({ app }: Attacker): string {
  const sum = [...app.name].reduce((before, letter) => before + (letter.codePointAt(0) ?? 0), 0);
  return `127.0.9.${1 + (sum % 250)}`;
}

/** The shortest of three times: whoever is held up is so for as long as the attack lasts, also when the machine is not busy with its start. */
async function timeOfOthers(attacker: Attacker): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 3; round += 1) times.push(await timeOnce(attacker));
  return Math.min(...times);
}

/** Milliseconds until the app of another and the API answered; infinite if one did not. */
async function timeOnce({ platform, victim }: Attacker): Promise<number> {
  const begun = performance.now();
  const [page, answer] = await Promise.all([
    visit(platform, 'ada').catch(() => undefined),
    victim.ask('GET', '/v1/apps/ada').catch(() => undefined),
  ]);
  return page?.status === 200 && answer?.status === 200 ? performance.now() - begun : Number.POSITIVE_INFINITY;
}

function waitedLong(claim: Claim): string | undefined {
  return Number(claim) < 3000 ? undefined : `others waited ${Math.round(Number(claim))} ms`;
}

/** Resident bytes of the control plane and of the gateway, which names the data directory in its arguments or environment. */
async function memoryOf({ platform }: Attacker): Promise<number> {
  let bytes = 0;
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '');
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
    if (!/deploy\/\w/.test(command) || !(command + environment).includes(platform.dataDir)) continue;
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    bytes += Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024;
  }
  return bytes;
}

const mebibyte = 1024 * 1024;

export const entryPointProbes: readonly Probe[] = [
  {
    name: 'without a login holds nobody up by huge headers',
    family: 'entry points',
    gain: "the gateway's memory and time",
    quick: true,
    attack: byClient(async (attacker) => {
      const header = `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'a'.repeat(4 * mebibyte)}\r\n\r\n`;
      const flood = Promise.all(Array.from({ length: 20 }, () => sendRaw(attacker.platform.httpPort, header)));
      const waited = await timeOfOthers(attacker);
      return { waited, answers: await flood };
    }),
    judge: (claim) => {
      const { waited, answers } = claim as { waited: number; answers: string[] };
      return waitedLong(waited) ?? nothingReached(answers.filter((answer) => /^HTTP\/1\.1 [23]/.test(answer)));
    },
  },
  {
    name: 'without a login holds nobody up by TLS handshakes that are not finished',
    family: 'entry points',
    gain: 'the connections of everybody',
    attack: byClient((attacker) =>
      besides(
        () => connect({ host: '127.0.0.1', port: attacker.platform.httpsPort, localAddress: addressOf(attacker) }),
        400,
        () => timeOfOthers(attacker),
      ),
    ),
    judge: waitedLong,
  },
  {
    name: 'without a login holds nobody up by requests that are not finished',
    family: 'entry points',
    gain: 'the connections of everybody',
    quick: true,
    attack: byClient((attacker) => {
      const port = attacker.platform.httpPort;
      const head = 'POST /v1/webhooks/githost HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000000\r\n\r\n{';
      return besides(
        () =>
          connect({ host: '127.0.0.1', port, localAddress: addressOf(attacker) }).on('connect', function (this: Socket) {
            this.write(head);
          }),
        300,
        () => timeOfOthers(attacker),
      );
    }),
    judge: waitedLong,
  },
  {
    name: 'without a login takes no memory by names in TLS handshakes',
    family: 'entry points',
    gain: 'keys, files and memory for ever',
    quick: true,
    attack: byClient(async (attacker) => {
      const { platform } = attacker;
      const count = async () => (await readdir(join(platform.dataDir, 'gateway'), { recursive: true })).length;
      const before = await count();
      for (let i = 0; i < 120; i += 20)
        await Promise.all(
          Array.from({ length: 20 }, (_, index) => {
            const name = i % 40 === 0 ? `10.1.${i}.${index}.` : `unknown-${i}-${index}.example.com`;
            return greetTls(platform.httpsPort, name);
          }),
        );
      return (await count()) - before;
    }),
    judge: (claim) => (Number(claim) > 10 ? `${String(claim)} files` : undefined),
  },
  {
    name: 'without a login takes no memory by large bodies',
    family: 'entry points',
    gain: 'the memory of the control plane',
    attack: byClient(async (attacker) => {
      const before = await memoryOf(attacker);
      const body = 'x'.repeat(20 * mebibyte);
      const flood = Array.from({ length: 20 }, () =>
        fetch(`${attacker.platform.baseUrl}/v1/webhooks/githost`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` },
          body,
        }).then(
          (answer) => answer.status,
          () => 0,
        ),
      );
      let most = before;
      let over = false;
      const done = Promise.all(flood).finally(() => {
        over = true;
      });
      while (!over) most = Math.max(most, await memoryOf(attacker));
      const statuses = await done;
      return {
        mebibytes: Math.round((most - before) / mebibyte),
        accepted: statuses.filter((status) => status >= 200 && status < 300).length,
      };
    }),
    judge: (claim) => {
      const { mebibytes, accepted } = claim as { mebibytes: number; accepted: number };
      return accepted > 0 ? 'it was accepted' : mebibytes > 250 ? `${mebibytes} MiB` : undefined;
    },
  },
  {
    name: 'without a login cannot use the gateway as a proxy',
    family: 'entry points',
    gain: 'every port that trusts the machine',
    quick: true,
    attack: byClient(async ({ platform, canaries }) => {
      const [, port] = canaries.targets[0] ?? ['', 0];
      const target = `127.0.0.1:${port}`;
      const answers = await Promise.all(
        [
          `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`,
          `GET http://${target}/ HTTP/1.1\r\nHost: ${target}\r\n\r\n`,
          `GET / HTTP/1.1\r\nHost: ${target}\r\n\r\n`,
          `GET //${target}/ HTTP/1.1\r\nHost: localhost\r\n\r\n`,
          `GET @${target}/ HTTP/1.1\r\nHost: localhost\r\n\r\n`,
        ].map((bytes) => sendRaw(platform.httpPort, bytes)),
      );
      return answers.filter((answer) => answer.includes(canaries.word));
    }),
    judge: (claim, { canaries }) => nothingReached(claim) ?? nothingReached(canaries.takeVisits()),
  },
  {
    name: 'cannot hide a request in another',
    family: 'entry points',
    gain: "requests in the name of others' visitors",
    quick: true,
    attack: byClient(async (attacker) => {
      const host = `Host: ${attacker.app.name}.apps.localhost`;
      const hidden = `GET /hidden HTTP/1.1\r\n${host}\r\n\r\n`;
      const chunked = `0\r\n\r\n${hidden}`;
      const both = `POST / HTTP/1.1\r\n${host}\r\nContent-Length: ${chunked.length}\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`;
      const requests = [
        both,
        both.replace('Transfer-Encoding: chunked', 'Transfer-Encoding: xchunked'),
        both.replace('Transfer-Encoding: chunked', 'Transfer-Encoding : chunked'),
        both.replace('Transfer-Encoding: chunked', 'Transfer-Encoding:\r\n chunked'),
        ...['identity, chunked', 'chunked, chunked', 'chunked;q=1', '"chunked"', '\x0bchunked', 'chunked\x00'].map((encoding) =>
          both.replace('Transfer-Encoding: chunked', `Transfer-Encoding: ${encoding}`),
        ),
        ...['+3', '0x3', '3,3', '3 3', '-0', '18446744073709551619', '３'].map(
          (length) => `POST / HTTP/1.1\r\n${host}\r\nContent-Length: ${length}\r\n\r\n{}\n${hidden}`,
        ),
        // Chunks whose end servers disagree about: a line break in an extension, a size that overflows, bytes behind the data.
        ...['2;\n\r\n{}', '2;x\ny\r\n{}', '10000000000000002\r\n{}', '2\r\n{}xx', '0x2\r\n{}', '2 \n{}'].map(
          (chunk) => `POST / HTTP/1.1\r\n${host}\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}\r\n0\r\n\r\n${hidden}`,
        ),
        `GET / HTTP/1.1\r\n${host}\r\nX: a\r\n Content-Length: 5\r\n\r\n`,
        `GET / HTTP/1.1\r\n${host}\r\nX\x00: a\r\n\r\n`,
        `GET / HTTP/1.1\r\n${host}\r\nX: a\rContent-Length: 5\r\n\r\n`,
        `POST / HTTP/1.1\r\n${host}\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n{}\r\n`,
        `GET / HTTP/1.1\r\n${host}\r\nHost: ada.apps.localhost\r\n\r\n`,
        `GET / HTTP/1.1\n${host}\n\n`,
      ];
      const answers = await Promise.all(requests.map((bytes) => sendRaw(attacker.platform.httpPort, bytes)));
      return answers.filter((answer) => (answer.match(/HTTP\/1\.1 2/g) ?? []).length > 0).map((answer) => answer.slice(0, 60));
    }),
    judge: nothingReached,
  },
  {
    name: 'shows no measurements of the platform to visitors',
    family: 'entry points',
    gain: 'how much others do, and when',
    attack: byClient(async ({ platform }) => {
      const pages = await Promise.all(
        ['/metrics', '/v1/metrics', '/api/v1/metrics', '/debug', '/v1/internal'].map((path) => fetch(platform.baseUrl + path)),
      );
      return pages.filter(({ status }) => status === 200).map(({ url }) => url);
    }),
    judge: nothingReached,
  },
  {
    name: 'guesses no passwords at will',
    family: 'entry points',
    gain: 'accounts of others',
    attack: byClient(async ({ platform }) => {
      const statuses: number[] = [];
      for (let i = 0; i < 60; i++) {
        const answer = await fetch(`${platform.baseUrl}/v1/auth/login`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ email: 'ada@example.com', password: `guess ${i}` }),
        });
        statuses.push(answer.status);
      }
      return statuses;
    }),
    judge: (claim) => {
      const statuses = claim as number[];
      return statuses.includes(429) && !statuses.some((status) => status < 400 || status >= 500) ? undefined : statuses.join(' ');
    },
  },
];

/** A whole handshake with this name, whatever comes of it. */
function greetTls(port: number, servername: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connectTls({ host: '127.0.0.1', port, servername, rejectUnauthorized: false, timeout: 3000 });
    const end = (): void => {
      socket.destroy();
      resolve();
    };
    socket.on('secureConnect', end).on('error', end).on('timeout', end);
  });
}
