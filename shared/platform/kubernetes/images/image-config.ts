import { z } from 'zod';
import { AppError } from '#shared/errors.ts';
import { joinWords } from '#shared/platform/command-words.ts';
import type { ImageAddress } from './image-address.ts';

/** How an image is run. */
export interface ImageConfig {
  /** A shell command line for the process type 'web'; undefined when the image has none. */
  command: string | undefined;
}

/** Reads what the registry says about images. */
export interface ImageConfigs {
  /** @throws AppError 'internal' for an image that is not there, and when the registry does not answer */
  readConfig(image: ImageAddress): Promise<ImageConfig>;
}

const words = z.array(z.string()).nullish();
const configSchema = z.looseObject({
  config: z.looseObject({ Labels: z.record(z.string(), z.string()).nullish(), Entrypoint: words, Cmd: words }).nullish(),
});

/** Of buildpacks: what the label `io.buildpacks.build.metadata` holds. */
const metadataSchema = z.looseObject({
  processes: z
    .array(
      z.looseObject({
        type: z.string(),
        // An array since platform API 0.10.
        command: z.union([z.string(), z.array(z.string())]),
        args: words,
        direct: z.boolean().optional(),
      }),
    )
    .nullish(),
});

/**
 * @param json the image's configuration, as the registry has it
 * @throws AppError 'internal' for one that is not what the image specification says
 */
export function readImageConfig(json: unknown, builder: ImageAddress['builder']): ImageConfig {
  const parsed = configSchema.safeParse(json);
  if (!parsed.success) throw new AppError('internal', 'The configuration of the image is not valid.', { cause: parsed.error });
  const { Labels, Entrypoint, Cmd } = parsed.data.config ?? {};
  // The entry point of an image of buildpacks is their launcher; what it starts is in the label.
  if (builder === 'buildpacks') return { command: readWebProcess(Labels?.['io.buildpacks.build.metadata']) };
  const own = [...(Entrypoint ?? []), ...(Cmd ?? [])];
  return { command: own.length === 0 ? undefined : joinWords(own) };
}

function readWebProcess(label: string | undefined): string | undefined {
  if (label === undefined) return undefined;
  const parsed = metadataSchema.safeParse(JSON.parse(label));
  const web = parsed.data?.processes?.find(({ type }) => type === 'web');
  if (web === undefined) return undefined;
  const [command, args] = [[web.command].flat(), web.args ?? []];
  // One that is not direct is a line for a shell already.
  return web.direct === false && args.length === 0 ? command.join(' ') : joinWords([...command, ...args]);
}
