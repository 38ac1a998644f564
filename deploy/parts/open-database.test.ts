import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it } from 'vitest';
import { StartError } from '#deploy/host/start-error.ts';
import { startWithLifetime } from '#deploy/parts/lifetime.ts';
import { openDatabase } from '#deploy/parts/open-database.ts';
import { createLog } from '#shared/log.ts';
import { parseSettings } from '#shared/settings/settings.ts';

it('a database that asks for the password in clear stops the start with a line that names the setting', async () => {
  const askForPassword = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]);
  const server = createServer((socket) => socket.on('error', () => undefined).once('data', () => socket.write(askForPassword)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const settings = parseSettings({ PAAS_DATABASE_URL: `postgres://paas:the-password@127.0.0.1:${port}/paas` });
  const log = createLog('silent', () => undefined);
  const options = { settings, dataDir: '/nonexistent', hostEnv: {}, log, report: () => undefined };
  const opening = startWithLifetime((lifetime) => openDatabase(lifetime, options));
  await expect(opening).rejects.toThrow(StartError);
  await expect(opening).rejects.toThrow(/^PAAS_DATABASE_URL: .* in clear, .* set PAAS_DATABASE_AUTH=any /);
  server.close();
});
