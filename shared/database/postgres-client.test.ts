import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import pg from 'pg';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { connectPostgres } from './postgres.ts';
import { type DatabaseAuthentication, DatabaseAuthenticationError, PostgresClient, replacedMethods } from './postgres-client.ts';

const secret = 'the-password-of-the-superuser';

/** A message of the server: type, length, body. */
function message(type: string, ...body: readonly Buffer[]): Buffer {
  const content = Buffer.concat(body);
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(content.length + 4, 1);
  return Buffer.concat([head, content]);
}
const authentication = (kind: number, ...rest: readonly Buffer[]): Buffer => {
  const code = Buffer.alloc(4);
  code.writeInt32BE(kind);
  return message('R', code, ...rest);
};
const accepted = Buffer.concat([authentication(0), message('Z', Buffer.from('I'))]);
const sasl = authentication(10, Buffer.from('SCRAM-SHA-256\0\0'));

let server: Server | undefined;
afterEach(() => {
  server?.close();
});

/** Whoever took the port of the database: sends these messages to every client, and records what it gets. */
async function impersonate(...answers: readonly Buffer[]): Promise<{ url: string; received: () => string }> {
  const received: Buffer[] = [];
  server = createServer((socket: Socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write(answers[0] ?? ''));
    let next = 1;
    socket.on('data', (bytes: Buffer) => {
      received.push(bytes);
      if (received.length > 1) socket.write(answers[next++] ?? '');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `postgres://paas:${secret}@127.0.0.1:${port}/postgres`,
    received: () => Buffer.concat(received).toString('latin1'),
  };
}

async function connect(connectionString: string, allowed?: DatabaseAuthentication): Promise<void> {
  const client = new PostgresClient({ connectionString, ...(allowed === undefined ? {} : { authentication: allowed }) });
  client.on('error', () => undefined);
  await client.connect();
  await client.end();
}

describe('a server that took the place of the database', () => {
  const salt = Buffer.from('salt');
  const attempts: readonly [string, readonly Buffer[], RegExp][] = [
    ['asks for the password in clear', [authentication(3)], /asks for the password in clear, but SCRAM/],
    ['asks for an MD5 hash', [authentication(5, salt)], /asks for an MD5 hash of the password/],
    ['accepts whoever connects', [accepted], /accepts the connection without a password/],
    ['begins SCRAM and accepts without a proof', [sasl, accepted], /accepts the connection without a password/],
    ['begins SCRAM and then asks in clear', [sasl, authentication(3)], /asks for the password in clear/],
  ];
  for (const [what, answers, expected] of attempts) {
    it(`${what}: is refused, and does not get the password`, async () => {
      const { url, received } = await impersonate(...answers);
      await expect(connect(url)).rejects.toThrow(expected);
      expect(received()).toContain('paas');
      expect(received()).not.toContain(secret);
    });
  }

  it('is refused by pools, too, also without TLS where TLS is enough', async () => {
    const { url, received } = await impersonate(Buffer.concat([authentication(3), accepted]));
    for (const allowed of ['scram', 'tls'] as const) {
      const connection = connectPostgres(url, () => undefined, 1, allowed);
      await expect(connection.pool.query('select 1')).rejects.toThrow(DatabaseAuthenticationError);
      await connection.close();
    }
    expect(received()).not.toContain(secret);
  });

  it('gets the password in clear only where the operator allows any way to ask for it', async () => {
    const { url, received } = await impersonate(authentication(3), accepted);
    await connect(url, 'any');
    expect(received()).toContain(secret);
  });
});

it('the real server proves itself by SCRAM', async () => {
  await connect(inject('postgresUrl'));
  const wrong = new URL(inject('postgresUrl'));
  wrong.password = 'wrong';
  await expect(connect(wrong.href)).rejects.toThrow('password authentication failed');
});

it('pg has the methods that are replaced', () => {
  for (const name of replacedMethods) expect(pg.Client.prototype, name).toHaveProperty(name);
});
