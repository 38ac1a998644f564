import { Agent, request } from 'node:http';
import type { RunningPlatform } from '#test/support/platform/running-platform.ts';

export interface Load {
  /** Ends it and tells what came back. */
  stop(): Promise<LoadResult>;
  /** Answers so far. */
  count(): number;
}

export interface LoadResult {
  /** Answers by status, and `error <code>` for requests that got none. */
  outcomes: Record<string, number>;
  /** Answers by body. */
  bodies: Record<string, number>;
}

/** Keeps `connections` requests to an app under way at all times, half of them over connections that are kept alive. */
export function holdLoad(platform: Pick<RunningPlatform, 'httpPort'>, appName: string, connections = 4): Load {
  const result: LoadResult = { outcomes: {}, bodies: {} };
  let stopping = false;
  let answers = 0;
  const count = (table: Record<string, number>, key: string): void => {
    table[key] = (table[key] ?? 0) + 1;
  };
  const keepAlive = new Agent({ keepAlive: true });
  const ask = (agent: Agent | false): Promise<void> =>
    new Promise((resolve) => {
      const headers = { host: `${appName}.apps.localhost` };
      const asked = request({ host: '127.0.0.1', port: platform.httpPort, headers, agent }, (answer) => {
        let body = '';
        answer.setEncoding('utf8').on('data', (text: string) => {
          body += text;
        });
        answer.on('end', () => {
          answers++;
          count(result.outcomes, String(answer.statusCode));
          count(result.bodies, body);
          resolve();
        });
        answer.on('error', () => {
          count(result.outcomes, 'error cut');
          resolve();
        });
      });
      asked.on('error', (error: NodeJS.ErrnoException) => {
        count(result.outcomes, `error ${error.code ?? error.message}`);
        resolve();
      });
      asked.end();
    });
  const loops = Array.from({ length: connections }, async (_, index) => {
    while (!stopping) await ask(index % 2 === 0 ? keepAlive : false);
  });
  return {
    count: () => answers,
    async stop() {
      stopping = true;
      await Promise.all(loops);
      keepAlive.destroy();
      return result;
    },
  };
}
