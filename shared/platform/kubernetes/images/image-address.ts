/** Where the images of an app are. */
import type { AppId } from '#shared/ids.ts';

/** What made an image: it decides how its processes are started. */
export type ImageBuilder = 'buildpacks' | 'dockerfile';

/** All of them, in the order in which repositories of an app are looked at. */
export const imageBuilders: readonly ImageBuilder[] = ['buildpacks', 'dockerfile'];

/** The repository of an app's images of one kind. @param repository below which all apps are */
export function appRepository(repository: string, appId: AppId, builder: ImageBuilder): string {
  return `${repository}/${appId}/${builder}`;
}

/** An image, by the digest of its manifest. */
export interface ImageAddress {
  repository: string;
  /** `sha256:…` */
  digest: string;
  builder: ImageBuilder;
}

/** Undefined for what is not an address of an app's image below this repository. */
export function parseImageUrl(repository: string, imageUrl: string): ImageAddress | undefined {
  if (!imageUrl.startsWith(`${repository}/`)) return undefined;
  const [, path = '', builder, digest = ''] =
    /^([0-9a-f-]{36})\/(buildpacks|dockerfile)@(sha256:[0-9a-f]{64})$/.exec(imageUrl.slice(repository.length + 1)) ?? [];
  if (builder !== 'buildpacks' && builder !== 'dockerfile') return undefined;
  return { repository: appRepository(repository, path as AppId, builder), digest, builder };
}

/** Of an image of either kind: what made it. */
export function imageBuilderOf(imageUrl: string): ImageBuilder {
  return imageUrl.includes('/dockerfile@') ? 'dockerfile' : 'buildpacks';
}
