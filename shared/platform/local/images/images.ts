import { createHash } from 'node:crypto';
import { access, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { AppError } from '#shared/errors.ts';
import { ifMissing } from '#shared/files/if-missing.ts';
import { type AppId, isUuid } from '#shared/ids.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { Images } from '#shared/platform/images.ts';
import { moveTree, removeTree, syncTree } from '../disk/trees.ts';
import type { SandboxMount } from '../sandbox/sandbox.ts';
import type { UserRange } from '../sandbox/user-ranges.ts';
import { storedToolNames } from '../toolchains/stored-tools.ts';
import { platformParts, resolveToolchain, type ToolchainPlaces } from '../toolchains/toolchain-mounts.ts';
import { type ContainerConfig, containerConfigSchema } from './container-config.ts';
import { sealImage } from './seal-image.ts';

const strings = z.record(z.string(), z.string());
const descriptionSchema = z.object({
  builder: z.string(),
  processes: strings,
  releaseCommand: z.string().optional(),
  env: strings,
  path: z.array(z.string()),
  toolchain: z.array(
    z.union([
      z.object({ kind: z.literal('host'), path: z.string() }),
      z.object({ kind: z.literal('platform'), name: z.enum(platformParts) }),
      z.object({ kind: z.literal('stored'), name: z.enum(storedToolNames), version: z.string() }),
    ]),
  ),
  /** Of an image with a whole root file system; left out: its files are those of /app. */
  container: containerConfigSchema.optional(),
});

/** How an image is run; stored beside its files, in image.json. */
export type ImageDescription = z.infer<typeof descriptionSchema>;

/** An image that can be run. */
export interface LocalImage {
  readonly imageUrl: string;
  /** Absolute path of the files, which are seen at /app in the sandbox. They are immutable; writes go to a layer over them. */
  readonly root: string;
  /** The toolchains it needs, for `SandboxSpec.mounts`. */
  readonly mounts: readonly SandboxMount[];
  /** Variables, PATH among them. The app's own variables override them. */
  readonly env: Readonly<Record<string, string>>;
  readonly builder: string;
  readonly processes: Readonly<Record<string, string>>;
  readonly releaseCommand?: string;
  /** Of a container image, whose `root` is seen as / in the sandbox. */
  readonly container?: ContainerConfig & { readonly users: UserRange };
}

export interface LocalImages extends Images {
  /** @throws AppError 'not_found' for an image that does not exist */
  readImage(imageUrl: string): Promise<LocalImage>;
  /**
   * Makes an image of a built tree, which is immutable from then on.
   * @returns undefined when it is larger than `longestBytes`
   * @throws BuildFailure for paths that are too long for the kernel
   */
  storeImage(
    appId: AppId,
    place: PlaceTree,
    description: ImageDescription,
    longestBytes: number,
  ): Promise<StoredImage | undefined>;
}

/** Moves or copies a tree to a path that does not exist; its parent belongs to the platform. */
export type PlaceTree = (target: string) => Promise<void>;

export interface StoredImage {
  readonly imageUrl: string;
  /** 64 hex digits. */
  readonly digest: string;
  readonly bytes: number;
}

export interface LocalImagesOptions {
  readonly dataDir: string;
  readonly places: ToolchainPlaces;
  /** Uid that owns an app's files, so that its code may change them in a layer; undefined: that of this process. */
  ensureOwner(appId: AppId): Promise<number | undefined>;
  /** Users of the container images of an app. @throws Error where this platform cannot run such images */
  ensureUsers(appId: AppId): Promise<UserRange>;
}

const digestPattern = /^[0-9a-f]{64}$/;

/** The end of every PATH. */
export const systemPath = ['/usr/local/bin', '/usr/bin', '/bin'] as const;
const appNode = '/app/node_modules/.bin';

/** Images as directories on this machine, addressed by the digest of their content. */
export function createLocalImages({ dataDir, places, ensureOwner, ensureUsers }: LocalImagesOptions): LocalImages {
  const base = `${dataDir}/images`;
  const locate = (imageUrl: string): string | undefined => {
    const address = parseImageUrl(imageUrl);
    return address === undefined ? undefined : `${base}/${address.appId}/${address.digest}`;
  };
  const discard = async (path: string): Promise<boolean> => {
    // Renamed first, so that a crash in the middle leaves no half image.
    const discarded = `${base}/.deleted-${crypto.randomUUID()}`;
    if (!(await moveTree(path, discarded))) return false;
    await removeTree(discarded);
    return true;
  };
  return {
    async imageExists(imageUrl) {
      const path = locate(imageUrl);
      return path !== undefined && (await exists(`${path}/image.json`));
    },
    async listImages(appId) {
      const names = isUuid(appId) ? await readdir(`${base}/${appId}`).catch(ifMissing([])) : [];
      return names.filter((name) => digestPattern.test(name)).map((digest) => `slug://${appId}@sha256:${digest}`);
    },
    async deleteImage(imageUrl) {
      const path = locate(imageUrl);
      return path !== undefined && (await discard(path));
    },
    async deleteImages(appId) {
      return isUuid(appId) && (await discard(`${base}/${appId}`));
    },
    async readImage(imageUrl) {
      const path = locate(imageUrl);
      const text = path === undefined ? undefined : await readFile(`${path}/image.json`, 'utf8').catch(ifMissing(undefined));
      if (path === undefined || text === undefined)
        throw new AppError('not_found', `The image ${imageUrl} does not exist any more. Push again to build it again.`);
      const description = descriptionSchema.parse(JSON.parse(text));
      const { builder, processes, releaseCommand, toolchain, container } = description;
      const appId = parseImageUrl(imageUrl)?.appId;
      return {
        imageUrl,
        root: `${path}/app`,
        mounts: await resolveToolchain(toolchain, places),
        env: container === undefined ? appEnvironment(description) : { HOME: container.home, ...description.env },
        builder,
        processes,
        ...omitUndefined({ releaseCommand }),
        ...(container === undefined || appId === undefined
          ? {}
          : { container: { ...container, users: await ensureUsers(appId) } }),
      };
    },
    async storeImage(appId, place, description, longestBytes) {
      const staged = `${base}/.staged-${crypto.randomUUID()}`;
      await mkdir(staged, { recursive: true, mode: 0o755 });
      try {
        await place(`${staged}/app`);
        const users = description.container && (await ensureUsers(appId));
        const sealed = await sealImage({ directory: `${staged}/app`, owner: await ensureOwner(appId), users, longestBytes });
        if ('tooLarge' in sealed) return undefined;
        if ('tooDeep' in sealed)
          throw new BuildFailure('The built app has directories in one another until their path is longer than 4096 bytes.');
        const text = JSON.stringify(description);
        const digest = createHash('sha256').update(sealed.manifestDigest).update(text).digest('hex');
        await writeFile(`${staged}/image.json`, text);
        await syncTree(staged);
        await mkdir(`${base}/${appId}`, { recursive: true });
        await rename(staged, `${base}/${appId}/${digest}`).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error; // else the same image exists already
        });
        return { imageUrl: `slug://${appId}@sha256:${digest}`, digest, bytes: sealed.bytes };
      } finally {
        await removeTree(staged);
      }
    },
  };
}

function appEnvironment({ env, path }: ImageDescription): Readonly<Record<string, string>> {
  return { LANG: 'C.UTF-8', ...env, PATH: [...path, appNode, ...systemPath].join(':') };
}

/** Removes what a crash has left half stored or half deleted. To be called before anything is stored. */
export async function removeImageLeftovers(dataDir: string): Promise<void> {
  const names = await readdir(`${dataDir}/images`).catch(ifMissing([]));
  for (const name of names.filter((name) => name.startsWith('.'))) await removeTree(`${dataDir}/images/${name}`);
}

function parseImageUrl(imageUrl: string): { appId: AppId; digest: string } | undefined {
  const [, appId, digest] = /^slug:\/\/([0-9a-f-]{36})@sha256:([0-9a-f]{64})$/.exec(imageUrl) ?? [];
  return appId === undefined || digest === undefined || !isUuid(appId) ? undefined : { appId: appId as AppId, digest };
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
