import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { AppError } from '#shared/errors.ts';

/** Ports for servers on this machine, below the range from which the kernel takes ports for outgoing connections. */
export interface PortPool {
  /** Takes a port on which nothing listens; `preferred` if it is free. @throws AppError when no port is free */
  reserve(preferred?: number): Promise<number>;
  /** Marks a port as taken: that of an instance found again, or of a route that still names it. */
  hold(port: number): void;
  /** The port may be taken again. */
  release(port: number): void;
}

export interface PortRange {
  /** Both inclusive. */
  from: number;
  to: number;
}

const lowest = 20_000;

/** The range between 20000 and the kernel's own range; at least 1,000 ports. @param ephemeralRange as in ip_local_port_range */
export function planPortRange(ephemeralRange: string): PortRange {
  const ephemeralFrom = Number.parseInt(ephemeralRange, 10);
  return { from: lowest, to: ephemeralFrom >= lowest + 1000 ? ephemeralFrom - 1 : 32_767 };
}

/** The range for apps on this machine. */
export async function readPortRange(): Promise<PortRange> {
  return planPortRange(await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').catch(() => '32768 60999'));
}

/**
 * Starts at a random port: several platforms on one machine rarely try the same port between the test here and the app's own bind.
 */
export function createPortPool(range: PortRange, isFree: (port: number) => Promise<boolean> = canListen): PortPool {
  const taken = new Set<number>();
  const size = range.to - range.from + 1;
  let next = Math.floor(Math.random() * size);

  async function take(port: number): Promise<boolean> {
    if (taken.has(port)) return false;
    // Marked before the test is awaited, so that two calls at the same time never get the same port.
    taken.add(port);
    if (await isFree(port)) return true;
    taken.delete(port);
    return false;
  }

  return {
    async reserve(preferred) {
      if (preferred !== undefined && (await take(preferred))) return preferred;
      for (let tried = 0; tried < size; tried += 1) {
        const port = range.from + (next % size);
        next += 1;
        if (await take(port)) return port;
      }
      throw new AppError('internal', 'No port is free for another app process on this machine.');
    },
    hold: (port) => void taken.add(port),
    release: (port) => void taken.delete(port),
  };
}

/** Binds all addresses of both families, so that a listener on any of them is found. */
async function canListen(port: number): Promise<boolean> {
  return (await tryListen(port, '::')) ?? (await tryListen(port, '0.0.0.0')) ?? false;
}

/** Undefined when the machine lacks the address family. */
function tryListen(port: number, host: string): Promise<boolean | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code === 'EAFNOSUPPORT' || error.code === 'EADDRNOTAVAIL' ? undefined : false);
    });
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
