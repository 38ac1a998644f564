import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callGateway } from '#shared/routing/call-gateway.ts';
import { gatewayFiles } from '../gateway-options.ts';
import { startTestGateway, type TestGateway } from '../testing/start-test-gateway.ts';

let test: TestGateway;
beforeAll(async () => {
  test = await startTestGateway();
});
afterAll(() => test?.stop());

describe('the control socket', () => {
  it.each(['../ca-key', '../ca', 'a/../../ca-key', ''])('deletes no file for %j, which is not a host', async (name) => {
    const { controlSocket, directory } = gatewayFiles(test.dataDir);
    const files = ['ca.pem', 'ca-key.pem'].map((file) => join(directory, file));
    const before = await Promise.all(files.map((file) => readFile(file, 'utf8')));
    const path = `/certificates/${encodeURIComponent(name)}`;
    await expect(callGateway(controlSocket, { method: 'DELETE', path })).rejects.toMatchObject({ code: 'not_found' });
    expect(await Promise.all(files.map((file) => readFile(file, 'utf8')))).toEqual(before);
  });
});
