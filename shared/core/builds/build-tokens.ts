import { type BuildTokenPurpose, insertBuildToken } from '#shared/core/builds/build-tokens-store.ts';
import type { Context } from '#shared/core/context.ts';
import { addSeconds, secondsPerDay } from '#shared/durations.ts';
import type { BuildId } from '#shared/ids.ts';
import type { BuildAddress } from '#shared/platform/builds.ts';
import { hashSecretToken, newSecretToken } from '#shared/secret-token.ts';

const paths: Readonly<Record<BuildTokenPurpose, string>> = { source: 'source', callback: 'complete' };

/** A new address at which the pipeline of a build asks the control plane, with a token for a day that opens it. */
export async function createBuildAddress(
  { db, clock, settings }: Pick<Context, 'db' | 'clock' | 'settings'>,
  buildId: BuildId,
  purpose: BuildTokenPurpose,
): Promise<BuildAddress> {
  const token = newSecretToken('paasb_');
  await insertBuildToken(db, {
    token_hash: await hashSecretToken(token),
    build_id: buildId,
    purpose,
    expires_at: addSeconds(clock.now(), secondsPerDay),
  });
  return { url: `${settings.baseUrl}/v1/internal/builds/${buildId}/${paths[purpose]}`, token };
}
