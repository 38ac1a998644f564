import { spawn } from 'node:child_process';
import { closeSync, constants, mkdirSync, openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Log } from '#shared/log.ts';
import { reachableSocketPath } from '#shared/net/unix-socket.ts';
import { reopenPipe } from './open-pipe.ts';
import { type OutputAnswer, type OutputRequest, type OutputStream, outputProtocolVersion } from './output-protocol.ts';
import type { OutputLimits } from './output-segments.ts';

/** The write end of a stream's pipe, to be given to a program. */
export interface OutputEnd {
  readonly fd: number;
  close(): void;
}

/**
 * Collects output of programs in files, by way of pipes and a process that outlives this one. Streams are named by the path of
 * their files without offset (`output-segments.ts`).
 */
export interface OutputWriter {
  /** Creates the pipe of a stream, or takes the one that exists. */
  open(base: string, limits: OutputLimits): Promise<OutputEnd>;
  /** Resolves when what programs have written to streams in this directory is in files. */
  sync(directory: string): Promise<void>;
  /** To be called when the programs that write to the stream have ended. The files stay. */
  close(base: string): Promise<void>;
  /** Starts the process, or finds it, so that the first program need not wait for that. */
  warmUp(): void;
  /** Ends the process. To be called when all programs have ended. */
  stop(): Promise<void>;
  /** Leaves the process running. */
  detach(): Promise<void>;
}

/** @param directory of the process's socket; created */
export function createOutputWriter(directory: string, log: Log): OutputWriter {
  const socketPath = join(directory, 'control.sock');
  /**
   * All pipes are held here, too. If the process dies, the programs that write to it would get SIGPIPE. So another process can take
   * the pipes over, with what is in them.
   */
  const held = new Map<string, { fd: number; limits: OutputLimits }>();
  let connection: Promise<Connection> | undefined;
  let ended = false;

  function hold({ base, limits, fd }: OutputStream, pid: number): void {
    if (!held.has(base)) held.set(base, { limits, fd: reopenPipe(`/proc/${pid}/fd/${fd}`) });
  }

  async function begin(): Promise<Connection> {
    const found = await connectTo(socketPath).catch(() => undefined);
    const answer = await found?.ask({ do: 'list' });
    for (const stream of answer?.streams ?? []) hold(stream, answer?.pid ?? 0);
    if (found !== undefined && answer?.version === outputProtocolVersion) return supervise(found);
    // Two processes may read one pipe, but each byte goes to one of them only.
    await found?.ask({ do: 'stop' }).catch(() => undefined);
    await startProcess(directory);
    const started = await connectTo(socketPath);
    for (const [base, { limits, fd }] of held)
      await started.ask({ do: 'open', base, limits, from: `/proc/${process.pid}/fd/${fd}` });
    return supervise(started);
  }

  function supervise(established: Connection): Connection {
    void established.closed.then(() => {
      connection = undefined;
      if (ended) return;
      log.warn('the process that collects the output of apps has ended and is started again');
      void connected().catch((error: unknown) => log.error('the output of apps cannot be collected', { error }));
    });
    return established;
  }

  function connected(): Promise<Connection> {
    if (connection !== undefined) return connection;
    const beginning = begin();
    connection = beginning;
    beginning.catch(() => {
      if (connection === beginning) connection = undefined;
    });
    return beginning;
  }

  function release(base: string): void {
    const pipe = held.get(base);
    held.delete(base);
    if (pipe !== undefined) closeSync(pipe.fd);
  }

  async function ask(request: OutputRequest): Promise<OutputAnswer> {
    return (await connected()).ask(request);
  }

  return {
    async open(base, limits) {
      const { streams, pid } = await ask({ do: 'open', base, limits });
      const [stream] = streams;
      if (stream === undefined) throw new Error('the process that collects output opened no stream');
      hold(stream, pid);
      const fd = openSync(`/proc/${pid}/fd/${stream.fd}`, constants.O_WRONLY);
      return { fd, close: () => closeSync(fd) };
    },
    async sync(path) {
      await ask({ do: 'sync', directory: path });
    },
    async close(base) {
      await connected();
      if (!held.has(base)) return;
      await ask({ do: 'close', base });
      release(base);
    },
    warmUp: () => void connected().catch((error: unknown) => log.error('the output of apps cannot be collected', { error })),
    async stop() {
      ended = true;
      const established = (await connection?.catch(() => undefined)) ?? (await connectTo(socketPath).catch(() => undefined));
      await established?.ask({ do: 'stop' }).catch(() => undefined);
      established?.end();
      for (const base of [...held.keys()]) release(base);
    },
    async detach() {
      ended = true;
      (await connection?.catch(() => undefined))?.end();
      for (const base of [...held.keys()]) release(base);
    },
  };
}

interface Connection {
  ask(request: OutputRequest): Promise<OutputAnswer>;
  readonly closed: Promise<void>;
  end(): void;
}

async function connectTo(socketPath: string): Promise<Connection> {
  const socket = await new Promise<Socket>((resolve, reject) => {
    const opening = connect(reachableSocketPath(socketPath));
    opening.once('error', reject);
    opening.once('connect', () => resolve(opening));
  });
  socket.unref();
  const waiting = new Map<number, { resolve(answer: OutputAnswer): void; reject(error: Error): void }>();
  let last = 0;
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      for (const { reject } of waiting.values()) reject(new Error('the process that collects output has ended'));
      resolve();
    });
  });
  socket.on('error', () => undefined);
  const lines = createInterface({ input: socket });
  lines.on('error', () => undefined);
  lines.on('line', (line) => {
    const answer = JSON.parse(line) as OutputAnswer;
    const asker = waiting.get(answer.id);
    waiting.delete(answer.id);
    if (answer.error === undefined) asker?.resolve(answer);
    else asker?.reject(new Error(`the output of a program cannot be collected: ${answer.error}`));
  });
  return {
    closed,
    end: () => socket.destroy(),
    ask(request) {
      last += 1;
      const id = last;
      return new Promise((resolve, reject) => {
        if (socket.destroyed) return reject(new Error('the process that collects output has ended'));
        waiting.set(id, { resolve, reject });
        // Without one the process that asks could end in the middle.
        socket.ref();
        socket.write(`${JSON.stringify({ id, request })}\n`);
      }).finally(() => {
        if (waiting.size === 0) socket.unref();
      }) as Promise<OutputAnswer>;
    },
  };
}

async function startProcess(directory: string): Promise<void> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const log = openSync(join(directory, 'errors.log'), 'a', 0o600);
  try {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'output-writer-process.ts'), directory], {
      detached: true,
      cwd: '/',
      // Not the control plane's environment, which has secrets.
      env: {},
      stdio: ['ignore', 'ignore', log, 'ipc'],
    });
    await new Promise<void>((resolve, reject) => {
      child.once('message', () => resolve());
      child.once('error', reject);
      child.once('exit', (code) => reject(new Error(`the process that collects output did not start (exit ${code})`)));
    });
    child.unref();
  } finally {
    closeSync(log);
  }
}
