import type { AppId } from '#shared/ids.ts';
import type { Images } from '#shared/platform/images.ts';

export interface FakeImages extends Images {
  /** As a build does that succeeds. */
  addImage(appId: AppId, imageUrl: string): void;
}

/** Images that are nothing but their addresses. */
export function createFakeImages(): FakeImages {
  const images = new Map<AppId, Set<string>>();
  return {
    addImage: (appId, imageUrl) => void images.set(appId, (images.get(appId) ?? new Set()).add(imageUrl)),
    imageExists: async (imageUrl) => [...images.values()].some((urls) => urls.has(imageUrl)),
    listImages: async (appId) => [...(images.get(appId) ?? [])],
    deleteImage: async (imageUrl) => [...images.values()].some((urls) => urls.delete(imageUrl)),
    deleteImages: async (appId) => images.delete(appId),
  };
}
