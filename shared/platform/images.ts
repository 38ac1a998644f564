/** Port: the images that builds make. */
import type { AppId } from '#shared/ids.ts';

export interface Images {
  imageExists(imageUrl: string): Promise<boolean>;
  /** False when there was none. Never called for an image that a kept release uses. */
  deleteImage(imageUrl: string): Promise<boolean>;
  /** Everything of an app at once, at its purge. */
  deleteImages(appId: AppId): Promise<boolean>;
}
