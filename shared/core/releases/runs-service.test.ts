import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import type { RunEvent, RunRequest } from '#shared/core/releases/runs.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';

let core: CoreFixture;
let ada: Principal;
let app: FixtureApp;
beforeAll(async () => {
  core = await createCoreFixture();
  // The first tenant is the operator's, without quotas.
  await core.signUp();
  await core.startWorker();
});
afterAll(() => core?.close());
beforeEach(async () => {
  core.script = {};
  ada = await core.signUp();
  app = await core.createApp(ada);
});

const never = new AbortController().signal;
const start = (run: Partial<RunRequest>, signal = never) =>
  core.services.runs.startRun(ada, app.name, { command: 'work', input: false, ...run }, signal);

async function read(events: AsyncIterable<RunEvent>): Promise<{ ids: string[]; output: string; exitCode: number | undefined }> {
  const seen = { ids: [] as string[], output: '', exitCode: undefined as number | undefined };
  for await (const event of events) {
    if ('id' in event) seen.ids.push(event.id);
    else if ('exitCode' in event) seen.exitCode = event.exitCode;
    else seen.output += new TextDecoder().decode(event.bytes);
  }
  return seen;
}

/** Commands that run until they are ended. */
function hang(): { running: Set<string> } {
  const running = new Set<string>();
  core.script = {
    run: (command, line, signal) =>
      new Promise((_resolve, reject) => {
        running.add(command);
        line('working');
        signal.addEventListener('abort', () => {
          running.delete(command);
          reject(signal.reason as Error);
        });
      }),
  };
  return { running };
}

/** Reads until the command prints. */
async function untilItPrints(events: AsyncIterable<RunEvent>): Promise<AsyncIterator<RunEvent>> {
  const iterator = events[Symbol.asyncIterator]();
  for (;;) {
    const { value, done } = await iterator.next();
    if (done === true) throw new Error('it has ended');
    if ('bytes' in value) return iterator;
  }
}

describe('a one-off command', () => {
  it('is refused before the first release', async () => {
    await expect(start({})).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('has no release yet') });
  });

  it('gives its output and its exit code, and the log says who ran it but not what', async () => {
    await app.commit();
    await app.push('main');
    const commands: string[] = [];
    core.script = {
      run: async (command, line) => {
        commands.push(command);
        line('one');
        return 3;
      },
    };
    const { ids, output, exitCode } = await read(await start({ command: ['echo', "it's", 'PASSWORD=geheim'] }));
    expect([ids.length, output, exitCode]).toEqual([1, 'one\n', 3]);
    expect(commands).toEqual([`echo 'it'\\''s' 'PASSWORD=geheim'`]);
    const logged = (await core.services.logs.readLogs(ada, app.name, { lines: 10 })).map(({ message }) => message);
    const name = `run.${ids[0]?.slice(0, 8)}`;
    expect(logged).toEqual(expect.arrayContaining([`${ada.email} started ${name} with v1`, `${name} exited with code 3`]));
    expect(logged.join()).not.toContain('geheim');
  });

  it('runs with the newest release while none has been live', async () => {
    core.script = { boot: () => ({ exitCode: 1, output: [] }) };
    await app.commit();
    await app.push('main');
    expect((await read(await start({}))).exitCode).toBe(0);
  });

  it('reads what is written to it', async () => {
    await app.commit();
    await app.push('main');
    core.script = {
      run: async (_command, line, _signal, input) => {
        line((await input?.()) ?? '');
        return 0;
      },
    };
    const events = (await start({ input: true }))[Symbol.asyncIterator]();
    const first = (await events.next()).value as { id: string };
    const write = (bytes: Uint8Array | null) => core.services.runs.writeInput(ada, app.name, first.id, bytes);
    await write(new TextEncoder().encode('hello'));
    await write(null);
    expect(await read({ [Symbol.asyncIterator]: () => events })).toMatchObject({ output: 'hello\n', exitCode: 0 });
    await expect(write(null)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('is not written to by way of another app', async () => {
    await app.commit();
    await app.push('main');
    hang();
    const events = await start({ input: true });
    const { value } = await events[Symbol.asyncIterator]().next();
    const { id } = value as { id: string };
    const other = await core.createApp(ada);
    await expect(core.services.runs.writeInput(ada, other.name, id, null)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('counts as an instance until it has ended, however it ends', async () => {
    await app.commit();
    await app.push('main');
    const { settings } = core.context;
    const before = settings.quotas;
    settings.quotas = { ...before, instances: 2 };
    const { running } = hang();
    try {
      const stop = new AbortController();
      const first = await untilItPrints(await start({ command: 'first' }, stop.signal));
      await expect(start({ command: 'second' })).rejects.toMatchObject({
        code: 'forbidden',
        message: expect.stringContaining('Your plan allows 2 instances; this team would have 3.'),
      });
      await expect(core.services.processes.scaleProcess(ada, app.name, 'web', 2)).rejects.toMatchObject({ code: 'forbidden' });
      stop.abort(new Error('gone'));
      await expect(first.next()).rejects.toThrow('gone');
      const second = await untilItPrints(await start({ command: 'second' }));
      await second.return?.();
      await expect.poll(() => running.size).toBe(0);
      await untilItPrints(await start({ command: 'third' })).then((third) => third.return?.());
    } finally {
      settings.quotas = before;
    }
  });

  it('does not count any more when nobody has followed it for a minute', async () => {
    await app.commit();
    await app.push('main');
    const { settings } = core.context;
    const before = settings.quotas;
    settings.quotas = { ...before, instances: 2 };
    try {
      // As a process leaves it that was killed.
      await start({});
      await expect(start({})).rejects.toMatchObject({ code: 'forbidden' });
      await core.context.db
        .updateTable('runs')
        .set({ seen_at: new Date(Date.now() - 61_000) })
        .where('app_id', '=', app.id)
        .execute();
      expect((await read(await start({}))).exitCode).toBe(0);
    } finally {
      settings.quotas = before;
    }
  });

  it('ends when the app is deleted', async () => {
    await app.commit();
    await app.push('main');
    const { running } = hang();
    const events = await untilItPrints(await start({}));
    await core.services.appDeletion.deleteApp(ada, app.name);
    await expect(events.next()).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('was deleted') });
    await expect.poll(() => running.size).toBe(0);
  });
});
