/** What a deleted app leaves in the data directory until its purge; removed at once, so that the disk does not fill. */
export function appDataPaths(dataDir: string, appId: string): readonly string[] {
  return ['images', 'caches', 'workloads'].map((kind) => `${dataDir}/${kind}/${appId}`);
}
