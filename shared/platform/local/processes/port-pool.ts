import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { AppError } from '#shared/errors.ts';

/** Ports that app instances listen on, below the range the kernel gives to outgoing connections. */
export interface PortPool {
  /** A port nobody listens on and that is not handed out; `preferred` if that one is still good. */
  reserve(preferred?: number): Promise<number>;
  /** Marks a port of an instance found again, or of a route that still names it, as handed out. */
  hold(port: number): void;
  release(port: number): void;
}

export interface PortRange {
  /** Both inclusive. */
  from: number;
  to: number;
}

const lowest = 20_000;

/** What lies between 20000 and the kernel's own range; at least 1,000 ports. */
export function planPortRange(ephemeralRange: string): PortRange {
  const ephemeralFrom = Number.parseInt(ephemeralRange, 10);
  return { from: lowest, to: ephemeralFrom >= lowest + 1000 ? ephemeralFrom - 1 : 32_767 };
}

export async function readPortRange(): Promise<PortRange> {
  return planPortRange(await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').catch(() => '32768 60999'));
}

/**
 * Starts at a random port, so that several platforms on one machine rarely look at the same one between the test bind
 * here and the app's own.
 */
export function createPortPool(range: PortRange, isFree: (port: number) => Promise<boolean> = canListen): PortPool {
  const taken = new Set<number>();
  const size = range.to - range.from + 1;
  let next = Math.floor(Math.random() * size);

  async function take(port: number): Promise<boolean> {
    if (taken.has(port)) return false;
    // Taken before the test is awaited: two calls at once must not test and get the same port.
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

/** Binds all addresses of both families, so that a listener on any of them is seen. */
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
