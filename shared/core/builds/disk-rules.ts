import type { Context } from '#shared/core/context.ts';
import { AppError } from '#shared/errors.ts';
import { limits } from '#shared/limits.ts';
import type { DiskSpaceFacts } from '#shared/platform/disk-space.ts';

/** 'low': the operator is warned. 'full': no build starts. */
export type DiskState = 'enough' | 'low' | 'full';

/** What free space means: builds are refused long before the platform's own data lacks room. */
export function judgeDiskSpace(facts: DiskSpaceFacts | undefined): DiskState {
  if (facts === undefined) return 'enough';
  const { freeBytes, reserveBytes, freeFiles, totalFiles } = facts;
  const isBelow = ({ reserves, filesShare }: { reserves: number; filesShare: number }): boolean =>
    freeBytes < reserves * reserveBytes || freeFiles < filesShare * totalFiles;
  if (isBelow(limits.disk.refuse)) return 'full';
  return isBelow(limits.disk.warn) ? 'low' : 'enough';
}

/** Whether no build may start now. */
export async function lacksRoomForBuilds({ platform }: Pick<Context, 'platform'>): Promise<boolean> {
  return judgeDiskSpace(await platform.diskSpace.readDiskSpace()) === 'full';
}

/** What users read about it. */
export const noRoomMessage =
  "The platform's disk is almost full, so no new builds start. Nothing is wrong with the app, and running apps are not affected. Ask the operator of the platform to make room, then push again.";

/** To be called before the transaction that starts a build. @throws AppError `conflict` if there is no room for builds */
export async function requireRoomForBuilds(context: Pick<Context, 'platform'>): Promise<void> {
  if (await lacksRoomForBuilds(context)) throw new AppError('conflict', noRoomMessage);
}
