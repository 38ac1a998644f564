import { z } from 'zod';

/** Signals that STOPSIGNAL may name instead of SIGTERM. */
export const stopSignals = ['SIGHUP', 'SIGINT', 'SIGKILL', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const;

/** What of an image's configuration matters to run it; stored in image.json. */
export const containerConfigSchema = z.object({
  /** Of the user that its programs run as, inside. */
  uid: z.number(),
  gid: z.number(),
  /** Absolute. */
  home: z.string(),
  /** Absolute. */
  workdir: z.string(),
  /** TCP ports of EXPOSE. */
  ports: z.array(z.number()),
  /** Left out: SIGTERM. */
  stopSignal: z.enum(stopSignals).optional(),
});

/** How programs of a container image are run. */
export type ContainerConfig = z.infer<typeof containerConfigSchema>;
