import { inject } from 'vitest';
import type { S3Account } from '#shared/object-store/s3-requests.ts';
import { openTestS3Server } from '#shared/object-store/testing/test-s3-server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A bucket of a real store (test/support/run/real-object-store.ts). When undefined, tests use `openTestS3Server`. */
    objectStore: S3Account | undefined;
  }
}

/** A prefix of a test's own in the object store of this test run. */
export interface TestBucket {
  account: S3Account;
  prefix: string;
  close(): Promise<void>;
}

/** Opens a new prefix, in the real store when there is one. */
export async function openTestBucket(): Promise<TestBucket> {
  const prefix = `${crypto.randomUUID()}/`;
  const real = inject('objectStore');
  if (real !== undefined) return { account: real, prefix, close: async () => undefined };
  const server = await openTestS3Server();
  return { account: server.account, prefix, close: () => server.close() };
}
