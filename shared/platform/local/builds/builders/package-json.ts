import { z } from 'zod';
import { BuildFailure } from '#shared/platform/build-failure.ts';

const strings = z.record(z.string(), z.string());

const schema = z.object({
  main: z.string().optional(),
  scripts: strings.optional(),
  dependencies: strings.optional(),
  devDependencies: strings.optional(),
  optionalDependencies: strings.optional(),
  engines: z.object({ node: z.string().optional() }).optional(),
  packageManager: z.string().optional(),
  workspaces: z.unknown().optional(),
});

/** What the platform reads of a package.json. */
export type PackageJson = z.infer<typeof schema>;

/** @throws BuildFailure that says what is wrong with it */
export function parsePackageJson(text: string): PackageJson {
  let json: unknown;
  try {
    json = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    throw new BuildFailure(`package.json is not valid JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new BuildFailure(`package.json: ${issue?.path.join('.') || 'the whole'} ${issue?.message ?? 'is not valid'}.`);
}
