import type { BuildSource, ImageSource } from '#shared/core/builds/builds.ts';
import { AppError } from '#shared/errors.ts';
import type { SourceEntry } from '#shared/platform/builds.ts';

/** Host with an optional port, path, tag and digest. Nothing that an instruction of a Dockerfile could be continued by. */
const referencePattern =
  /^[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?(?::\d{1,5}(?=\/))?(?:\/[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/;

/** @throws AppError validation_failed */
export function toImageSource(reference: string): ImageSource {
  if (reference.length > 512 || !referencePattern.test(reference))
    throw new AppError('validation_failed', 'The image must be a reference such as ghcr.io/owner/name:1.2 or name@sha256:….', {
      details: [{ path: 'image', message: 'must be a reference to a container image' }],
    });
  return { imageReference: reference };
}

/** Whether a build is made of a container image. */
export function isImage(source: BuildSource | null): source is ImageSource {
  return source !== null && 'imageReference' in source;
}

/** A source that consists of the image: each platform that builds Dockerfiles can release it. */
export async function* readImageSource({ imageReference }: ImageSource): AsyncGenerator<SourceEntry> {
  yield { path: 'Dockerfile', kind: 'file', content: new TextEncoder().encode(`FROM ${imageReference}\n`) };
}
