import type { Log } from '#shared/log.ts';
import { collectTools, type ToolCollection } from './tool-collection.ts';

/** @returns collects unused tools, one collection at a time. Never rejects: a failed one is logged, and the next one tries again */
export function createToolCollector(collection: ToolCollection, log: Log | undefined): () => Promise<void> {
  let running: Promise<void> | undefined;
  const collect = async (): Promise<void> => {
    try {
      const removed = await collectTools(collection);
      if (removed.length > 0) log?.info('removed tools that nothing uses', { tools: removed });
    } catch (error) {
      log?.warn('unused tools could not be removed', { error });
    } finally {
      running = undefined;
    }
  };
  return () => (running ??= collect());
}
