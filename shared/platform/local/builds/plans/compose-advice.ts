import { parse } from 'yaml';
import { z } from 'zod';
import type { SourceTree } from './source-tree.ts';

const names = ['compose.yaml', 'compose.yml', 'docker-compose.yml', 'docker-compose.yaml'] as const;
const schema = z.looseObject({
  services: z.record(z.string(), z.looseObject({ image: z.string().optional(), build: z.unknown().optional() }).nullable()),
});

/** Images by their last name, and the add-on that takes their place. */
const addons: readonly (readonly [image: RegExp, command: string])[] = [
  [/^(postgres|postgresql|postgis|timescaledb|pgvector)$/, 'paas addons:create database'],
  [/^(redis|valkey|keydb|dragonfly)$/, 'paas addons:create kvstore'],
];
const mostServices = 10;

/**
 * What becomes of the services of a compose file, which the platform does not read otherwise: a line each for the log of the build.
 * Empty without such a file, and for one that cannot be read.
 */
export async function adviseOnCompose(source: SourceTree): Promise<readonly string[]> {
  for (const name of names) {
    const text = await source.readText(name);
    if (text === undefined) continue;
    const parsed = schema.safeParse(parseOrNothing(text));
    if (!parsed.success) return [];
    const services = Object.entries(parsed.data.services).slice(0, mostServices);
    return [`${name} is not used: an app has one image. Its services here:`, ...services.map(describe)];
  }
  return [];
}

function parseOrNothing(text: string): unknown {
  try {
    return parse(text, { logLevel: 'error' });
  } catch {
    return undefined;
  }
}

function describe([service, definition]: readonly [string, { image?: string | undefined; build?: unknown } | null]): string {
  const label = service.slice(0, 60);
  const image = definition?.build === undefined ? definition?.image?.split('@')[0]?.split('/').at(-1)?.split(':')[0] : undefined;
  if (image === undefined) return `  ${label} -> a process type: a line in the Procfile, such as ${label}: COMMAND`;
  const addon = addons.find(([pattern]) => pattern.test(image))?.[1];
  if (addon !== undefined) return `  ${label} (${image}) -> ${addon}`;
  return `  ${label} (${image}) -> an app of its own: paas create NAME, then paas builds:create -a NAME --image ${definition?.image?.slice(0, 100)}`;
}
