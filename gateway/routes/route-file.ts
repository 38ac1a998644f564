import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { ifMissing } from '#shared/files/if-missing.ts';
import { replaceFile } from '#shared/files/replace-file.ts';
import type { AppId } from '#shared/ids.ts';
import type { AppRoute } from '#shared/routing/app-route.ts';

/** The JSON of an `AppRoute`, in the file and on the control socket. */
export const appRouteSchema = z.object({
  appId: z.uuid().transform((id) => id as AppId),
  appName: z.string().min(1),
  hosts: z.array(z.string()),
  sessionAffinity: z.boolean().exactOptional(),
  backends: z.array(
    z.object({
      releaseVersion: z.number().int(),
      weight: z.number(),
      instances: z.array(z.object({ key: z.string().min(1), host: z.string().min(1), port: z.number() })),
    }),
  ),
});

const fileSchema = z.object({ routes: z.array(appRouteSchema) });

/** The routes on disk, so that a gateway serves them as soon as it starts. */
export interface RouteFile {
  /** Empty when there is no file yet. @throws Error when the file is damaged */
  read(): Promise<readonly AppRoute[]>;
  /** Resolves when the routes of the time of the call, or newer ones, are on disk. */
  write(): Promise<void>;
}

/** @param current the routes to write */
export function createRouteFile(path: string, current: () => readonly AppRoute[]): RouteFile {
  let writing: Promise<void> = Promise.resolve();
  let waiting: Promise<void> | undefined;
  return {
    async read() {
      const text = await readFile(path, 'utf8').catch(ifMissing(undefined));
      return text === undefined ? [] : fileSchema.parse(JSON.parse(text)).routes;
    },
    write() {
      // All calls during a write share the next one.
      waiting ??= writing
        .catch(() => undefined)
        .then(() => {
          waiting = undefined;
          writing = replaceFile(path, `${JSON.stringify({ routes: current() }, undefined, 2)}\n`, 0o600);
          return writing;
        });
      return waiting;
    },
  };
}
