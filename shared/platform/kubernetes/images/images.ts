import { z } from 'zod';
import { AppError } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';
import type { Images } from '#shared/platform/images.ts';
import { appRepository, type ImageAddress, imageBuilders, parseImageUrl } from './image-address.ts';
import { type ImageConfigs, readImageConfig } from './image-config.ts';
import type { Registry } from './registry.ts';

const manifestSchema = z.looseObject({
  config: z.looseObject({ digest: z.string() }).optional(),
  manifests: z.array(z.looseObject({ digest: z.string(), platform: z.looseObject({ os: z.string() }).optional() })).optional(),
});

/**
 * Images in a registry, each known by the digest of its manifest. A registry lists tags only, so each build leaves a tag of its
 * own. What a deleted image leaves in the registry is removed by the garbage collection of that.
 * @param repository below which each app has its repositories
 */
export function createKubernetesImages(registry: Registry, repository: string): Images & ImageConfigs {
  const images: Images & ImageConfigs = {
    async imageExists(imageUrl) {
      const image = parseImageUrl(repository, imageUrl);
      return image !== undefined && (await registry.readDigest(image.repository, image.digest)) !== undefined;
    },

    async listImages(appId) {
      return (await listAddresses(appId)).map(({ repository: name, digest }) => `${name}@${digest}`);
    },

    async deleteImage(imageUrl) {
      const image = parseImageUrl(repository, imageUrl);
      return image !== undefined && registry.deleteManifest(image.repository, image.digest);
    },

    async deleteImages(appId) {
      const deleted: boolean[] = [];
      for (const image of await listAddresses(appId)) deleted.push(await registry.deleteManifest(image.repository, image.digest));
      return deleted.includes(true);
    },

    async readConfig(image) {
      const manifest = await readManifest(image, image.digest);
      // An index leads to the image itself; what else is in it are attestations, which have no system.
      const nested = manifest.manifests?.find(({ platform }) => platform?.os === 'linux')?.digest;
      const { config } = nested === undefined ? manifest : await readManifest(image, nested);
      if (config === undefined) throw broken(image);
      return readImageConfig(await registry.readBlob(image.repository, config.digest), image.builder);
    },
  };
  return images;

  async function listAddresses(appId: AppId): Promise<ImageAddress[]> {
    const found: ImageAddress[] = [];
    for (const builder of imageBuilders) {
      const name = appRepository(repository, appId, builder);
      const digests = new Set<string>();
      for (const tag of await registry.listTags(name)) digests.add((await registry.readDigest(name, tag)) ?? '');
      for (const digest of digests) if (digest !== '') found.push({ repository: name, digest, builder });
    }
    return found;
  }

  async function readManifest(image: ImageAddress, digest: string): Promise<z.infer<typeof manifestSchema>> {
    const parsed = manifestSchema.safeParse(await registry.readManifest(image.repository, digest));
    if (!parsed.success) throw broken(image);
    return parsed.data;
  }
}

function broken({ repository, digest }: ImageAddress): AppError {
  return new AppError('internal', `The image ${repository}@${digest} is not in the registry, or its manifest is not valid.`);
}
