/** Port: the images that builds make. */
import type { AppId } from '#shared/ids.ts';

export interface Images {
  imageExists(imageUrl: string): Promise<boolean>;
  /** The URLs of all images of an app. */
  listImages(appId: AppId): Promise<readonly string[]>;
  /** False when there was none. Never called for an image that a kept release uses. */
  deleteImage(imageUrl: string): Promise<boolean>;
  /** Everything of an app at once, at its purge. */
  deleteImages(appId: AppId): Promise<boolean>;
}
