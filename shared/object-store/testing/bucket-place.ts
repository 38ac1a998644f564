import { inject } from 'vitest';
import type { S3Account } from '#shared/object-store/s3-requests.ts';
import { openTestS3Server } from '#shared/object-store/testing/test-s3-server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A bucket of a real store; see test/support/run/real-object-store.ts. Undefined: the twin stands in. */
    objectStore: S3Account | undefined;
  }
}

/** A place of a test's own in the store that this run is about. */
export interface BucketPlace {
  account: S3Account;
  prefix: string;
  close(): Promise<void>;
}

export async function openBucketPlace(): Promise<BucketPlace> {
  const prefix = `${crypto.randomUUID()}/`;
  const real = inject('objectStore');
  if (real !== undefined) return { account: real, prefix, close: async () => undefined };
  const server = await openTestS3Server();
  return { account: server.account, prefix, close: () => server.close() };
}
