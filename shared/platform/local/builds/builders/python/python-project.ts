import { parse } from 'smol-toml';
import { z } from 'zod';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { VersionRequest } from '../../../toolchains/toolchain.ts';
import type { SourceTree } from '../../plans/source-tree.ts';

const pyprojectSchema = z.looseObject({
  project: z
    .looseObject({
      name: z.string().optional(),
      'requires-python': z.string().optional(),
      scripts: z.record(z.string(), z.string()).optional(),
    })
    .optional(),
  'build-system': z.looseObject({}).optional(),
  tool: z.record(z.string(), z.unknown()).optional(),
});

const pipfileSchema = z.looseObject({
  requires: z.looseObject({ python_version: z.string().optional(), python_full_version: z.string().optional() }).optional(),
});

/** What the files of a Python app say about it. */
export interface PythonProject {
  /** The file that dependencies are in: 'requirements.txt', 'pyproject.toml' or 'Pipfile'; else 'the app'. */
  readonly manifest: string;
  /** Contents by name of those that there are. */
  readonly files: ReadonlyMap<string, string>;
  readonly pyproject: z.infer<typeof pyprojectSchema> | undefined;
  /** What the project asks for or is compatible with. */
  readonly versions: readonly VersionRequest[];
}

const names = [
  'requirements.txt',
  'pyproject.toml',
  'uv.lock',
  'poetry.lock',
  'pdm.lock',
  'Pipfile',
  'Pipfile.lock',
  'setup.py',
  'uv.toml',
];
const longest = 32 * 1024 * 1024;

/** @throws BuildFailure if a file is not valid */
export async function readPythonProject(source: SourceTree): Promise<PythonProject> {
  const files = new Map<string, string>();
  for (const name of names) {
    const bytes = await source.readBytes(name, longest);
    if (bytes !== undefined) files.set(name, new TextDecoder().decode(bytes));
  }
  const pyproject = parseToml('pyproject.toml', files.get('pyproject.toml'), pyprojectSchema);
  const pipfile = parseToml('Pipfile', files.get('Pipfile'), pipfileSchema);
  const poetry = pyproject?.tool?.['poetry'] as { dependencies?: { python?: unknown } } | undefined;
  const asked: readonly (readonly [version: unknown, source: string])[] = [
    [pipfile?.requires?.python_full_version ?? pipfile?.requires?.python_version, 'Pipfile'],
    [pyproject?.project?.['requires-python'], '"requires-python" in pyproject.toml'],
    [poetry?.dependencies?.python, '"tool.poetry.dependencies" in pyproject.toml'],
  ];
  return {
    manifest: ['requirements.txt', 'pyproject.toml', 'Pipfile'].find((name) => files.has(name)) ?? 'the app',
    files,
    pyproject,
    versions: asked.flatMap(([version, from]) => (typeof version === 'string' ? [{ version, source: from }] : [])),
  };
}

function parseToml<Shape>(name: string, text: string | undefined, schema: z.ZodType<Shape>): Shape | undefined {
  if (text === undefined) return undefined;
  let toml: unknown;
  try {
    toml = parse(text);
  } catch (error) {
    throw new BuildFailure(`${name} is not valid TOML: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}`);
  }
  const parsed = schema.safeParse(toml);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new BuildFailure(`${name}: ${issue?.path.join('.') || 'the whole'} ${issue?.message ?? 'is not valid'}.`);
}
