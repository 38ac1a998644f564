import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import type { AppLogEntry, AppLogs } from '#shared/platform/app-logs.ts';

export interface AppLogsHarness {
  readonly logs: AppLogs;
  /** Writes complete lines as an app's process. */
  print(appId: AppId, process: string, releaseVersion: number, lines: readonly string[]): Promise<void>;
  /** What is deleted can be read for some minutes more. */
  readonly deletesLater?: boolean;
  stop(): Promise<void>;
}

/** What app logs do, with every driver. */
export function describeAppLogs(name: string, startHarness: () => Promise<AppLogsHarness>): void {
  describe(`app logs contract: ${name}`, () => {
    let harness: AppLogsHarness;
    let logs: AppLogs;
    beforeAll(async () => {
      harness = await startHarness();
      logs = harness.logs;
    });
    afterAll(() => harness?.stop());

    const messages = (entries: readonly AppLogEntry[]): string[] => entries.map(({ message }) => message);
    const numbered = (from: number, to: number): string[] =>
      Array.from({ length: to - from + 1 }, (_, at) => `line ${from + at}`);

    it('returns nothing for an app without output', async () => {
      expect(await logs.readLogs(newUuid(), { lines: 10 })).toEqual([]);
    });

    it('returns the newest lines, in the order of their times', async () => {
      const appId = newUuid<AppId>();
      await harness.print(appId, 'web.1', 1, numbered(1, 50));
      const entries = await logs.readLogs(appId, { lines: 10 });
      expect(messages(entries)).toEqual(numbered(41, 50));
      expect(entries.map(({ ts }) => ts.getTime())).toEqual(entries.map(({ ts }) => ts.getTime()).sort((a, b) => a - b));
      expect(entries[0]).toMatchObject({ process: 'web.1', stream: 'stdout', releaseVersion: 1 });
    });

    it('filters by process type, instance, release and time', async () => {
      const appId = newUuid<AppId>();
      await harness.print(appId, 'web.1', 1, ['a']);
      await harness.print(appId, 'web.2', 2, ['b']);
      await harness.print(appId, 'webhook.1', 2, ['c']);
      const [first] = await logs.readLogs(appId, { lines: 1 });
      const after = new Date((first?.ts.getTime() ?? 0) + 1);
      await expect.poll(() => Date.now()).toBeGreaterThan(after.getTime());
      await harness.print(appId, 'web.1', 2, ['d']);
      expect(messages(await logs.readLogs(appId, { lines: 9, process: 'web' }))).toEqual(['a', 'b', 'd']);
      expect(messages(await logs.readLogs(appId, { lines: 9, process: 'web.1' }))).toEqual(['a', 'd']);
      expect(messages(await logs.readLogs(appId, { lines: 9, releaseVersion: 2 }))).toEqual(['b', 'c', 'd']);
      expect(messages(await logs.readLogs(appId, { lines: 9, since: after }))).toEqual(['d']);
      expect(messages(await logs.readLogs(appId, { lines: 1, process: 'web', releaseVersion: 2 }))).toEqual(['d']);
    });

    it('gives no line a time before it was written, so that `since` loses none', async () => {
      const appId = newUuid<AppId>();
      for (let round = 0; round < 200; round += 1) {
        const since = new Date();
        await harness.print(appId, 'web.1', 1, [`round ${round}`]);
        expect(messages(await logs.readLogs(appId, { lines: 1, since }))).toEqual([`round ${round}`]);
      }
    });

    it("stores the platform's own lines under the platform's name", async () => {
      const appId = newUuid<AppId>();
      await logs.appendPlatformLog(appId, 'Scaled to web=2');
      expect(await logs.readLogs(appId, { lines: 5, process: 'paas' })).toMatchObject([
        { process: 'paas', stream: 'platform', message: 'Scaled to web=2' },
      ]);
    });

    it('follows without a gap and without a duplicate, from old lines to those that are written meanwhile', async () => {
      const appId = newUuid<AppId>();
      await harness.print(appId, 'web.1', 1, numbered(1, 200));
      const over = new AbortController();
      const seen: string[] = [];
      const writing = (async () => {
        for (let from = 201; from <= 2000; from += 100) await harness.print(appId, 'web.1', 1, numbered(from, from + 99));
      })();
      for await (const { message } of logs.followLogs(appId, { lines: 5000 }, over.signal)) {
        seen.push(message);
        if (message === 'line 2000') over.abort();
      }
      await writing;
      expect(seen).toEqual(numbered(1, 2000));
    });

    it('continues behind any entry, however the processes interleave, without a gap and without a duplicate', async () => {
      const appId = newUuid<AppId>();
      const written: string[] = [];
      for (let round = 0; round < 30; round += 1) {
        for (const process of ['web.1', 'worker.1', 'web.2']) {
          written.push(`${process} says ${round}`, `${process} says ${round}`);
          await harness.print(appId, process, 1, written.slice(-2));
        }
      }
      const seen: string[] = [];
      let after: string | undefined;
      while (seen.length < written.length) {
        const cut = new AbortController();
        let left = 1 + (seen.length % 17);
        for await (const { message, position } of logs.followLogs(appId, { lines: 1000 }, cut.signal, after)) {
          seen.push(message);
          after = position;
          left -= 1;
          if (left === 0 || seen.length === written.length) cut.abort();
        }
      }
      expect(seen).toEqual(written);
      const positions = (await logs.readLogs(appId, { lines: 1000 })).map(({ position }) => position);
      expect(new Set(positions).size).toBe(written.length);
      expect(positions.at(-1)).toBe(after);
    });

    it('continues with matching lines behind a position, and skips the others', async () => {
      const appId = newUuid<AppId>();
      await harness.print(appId, 'web.1', 1, ['seen']);
      const [seen] = await logs.readLogs(appId, { lines: 1 });
      await harness.print(appId, 'worker.1', 1, ['other']);
      await harness.print(appId, 'web.1', 1, ['next']);
      const cut = new AbortController();
      for await (const { message } of logs.followLogs(appId, { lines: 0, process: 'web' }, cut.signal, seen?.position)) {
        expect(message).toBe('next');
        cut.abort();
      }
    });

    it.each(['', 'x', '-1', '1.2.3', '1730000000000-1'])('does not accept %j as a position', async (after) => {
      const appId = newUuid<AppId>();
      await harness.print(appId, 'web.1', 1, ['one', 'two']);
      const cut = new AbortController();
      const following = logs.followLogs(appId, { lines: 1 }, cut.signal, after)[Symbol.asyncIterator]();
      expect((await following.next()).value).toMatchObject({ message: 'two' });
      cut.abort();
    });

    it('follows matching lines only', async () => {
      const appId = newUuid<AppId>();
      const over = new AbortController();
      const seen: string[] = [];
      await harness.print(appId, 'web.1', 1, ['old']);
      const following = (async () => {
        for await (const { message } of logs.followLogs(appId, { lines: 0, process: 'web' }, over.signal)) {
          seen.push(message);
          if (message === 'last') over.abort();
        }
      })();
      // The follower has started once it returns a line.
      await expect
        .poll(async () => {
          await harness.print(appId, 'web.1', 1, ['new']);
          return seen.length;
        })
        .toBeGreaterThan(0);
      await harness.print(appId, 'worker.1', 1, ['other']);
      await harness.print(appId, 'web.1', 1, ['last']);
      await following;
      expect(new Set(seen)).toEqual(new Set(['new', 'last']));
    });

    it('ends a follower at once when its signal aborts', async () => {
      const over = new AbortController();
      const following = logs.followLogs(newUuid(), { lines: 10 }, over.signal)[Symbol.asyncIterator]().next();
      over.abort();
      expect(await following).toMatchObject({ done: true });
    });

    it('deletes all lines of an app, and reports whether there were any', async () => {
      const appId = newUuid<AppId>();
      await harness.print(appId, 'web.1', 1, ['gone soon']);
      expect(await logs.deleteLogs(appId)).toBe(true);
      if (harness.deletesLater === true) return;
      expect(await logs.readLogs(appId, { lines: 10 })).toEqual([]);
      expect(await logs.deleteLogs(appId)).toBe(false);
    });
  });
}
