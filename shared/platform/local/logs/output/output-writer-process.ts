/**
 * The main of the process that writes the output of programs to files: `output-writer-process.ts <directory>`. The control plane
 * starts it detached, and it outlives the control plane: programs write to pipes, and a pipe needs somebody who reads it.
 */
import { existsSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { listenOnSocket } from '#shared/net/unix-socket.ts';
import { createPipeStock, reopenPipe } from './open-pipe.ts';
import { OutputPipe } from './output-pipe.ts';
import { type OutputAnswer, type OutputRequest, outputProtocolVersion } from './output-protocol.ts';

const directory = process.argv[2] ?? '';
process.title = `paas-output ${directory}`;
const pipes = new Map<string, OutputPipe>();
const stock = createPipeStock();
/** Of control planes, which read the files. */
let connections = 0;
/** Requests are served one after the other: two for one stream must not create two pipes. */
let chain: Promise<unknown> = Promise.resolve();

async function serve(request: OutputRequest): Promise<OutputAnswer['streams']> {
  switch (request.do) {
    case 'open': {
      const { base, limits, from } = request;
      const fd = pipes.get(base)?.fd ?? (from === undefined ? await stock.take() : reopenPipe(from));
      if (!pipes.has(base)) pipes.set(base, new OutputPipe(fd, base, limits, () => connections > 0));
      return [{ base, limits, fd }];
    }
    case 'sync':
      for (const [base, pipe] of pipes) if (dirname(base) === request.directory) pipe.sync();
      return [];
    case 'close':
      pipes.get(request.base)?.close();
      pipes.delete(request.base);
      return [];
    case 'list':
      return [...pipes].map(([base, { fd, limits }]) => ({ base, limits, fd }));
    case 'stop':
      for (const pipe of pipes.values()) pipe.close();
      pipes.clear();
      return [];
  }
}

function listen(socket: Socket): void {
  connections += 1;
  socket.once('close', () => {
    connections -= 1;
  });
  socket.on('error', () => undefined);
  const lines = createInterface({ input: socket });
  lines.on('error', () => undefined);
  lines.on('line', (line) => {
    chain = chain.then(async () => {
      const { id, request } = JSON.parse(line) as { id: number; request: OutputRequest };
      const facts = { id, pid: process.pid, version: outputProtocolVersion };
      const answer: OutputAnswer = await serve(request).then(
        (streams) => ({ ...facts, streams }),
        (error: unknown) => ({ ...facts, streams: [], error: error instanceof Error ? error.message : String(error) }),
      );
      const end = (): void => (request.do === 'stop' ? process.exit(0) : undefined);
      socket.write(`${JSON.stringify(answer)}\n`, end);
    });
    chain = chain.catch((error: unknown) => {
      console.error(error);
      socket.destroy();
    });
  });
}

const socketPath = join(directory, 'control.sock');
const server = createServer(listen);
await listenOnSocket(server, socketPath);
// The terminal may be closed; programs still write.
process.on('SIGHUP', () => undefined);
// Nobody could reach it any more to stop it.
setInterval(() => {
  if (!existsSync(socketPath)) process.exit(0);
}, 2000);
process.send?.('listening');
process.disconnect?.();
