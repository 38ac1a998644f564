import JSON5 from 'json5';
import { z } from 'zod';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { VersionRequest } from '../../toolchains/toolchain.ts';
import type { Builder } from '../plans/builder.ts';
import { describeVersion } from '../plans/describe-version.ts';
import type { SourceTree } from '../plans/source-tree.ts';
import type { VersionPins } from '../plans/version-pins.ts';

const output = 'out';
const projectFile = /^[\w.-]+\.(cs|fs|vb)proj$/;
const schema = z.looseObject({ sdk: z.looseObject({ version: z.string().optional() }).optional() });

export const dotnetBuilder: Builder = {
  name: 'dotnet',
  looksFor: '*.csproj (.NET)',
  async detect(source) {
    const why = await findProject(source);
    return why === undefined ? undefined : { what: '.NET app', why };
  },
  async plan(source, { toolchains, pins, cache }) {
    const project = (await findProject(source)) ?? '';
    const text = (await source.readText(project)) ?? '';
    const request = await findSdkRequest(source, text, pins);
    const dotnet = await toolchains.findLanguage('dotnet', request);
    const assembly = /<AssemblyName>([\w.-]{1,120})</.exec(text)?.[1] ?? project.replace(/\.\w+$/, '');
    const [root = ''] = dotnet.path;
    const settings = { DOTNET_ROOT: root, DOTNET_CLI_TELEMETRY_OPTOUT: '1', DOTNET_NOLOGO: '1' };
    return {
      notes: [describeVersion('.NET SDK', dotnet.version, request)],
      steps: [
        {
          title: `dotnet publish ${project}, cache ${cache}`,
          argv: ['dotnet', 'publish', project, '--configuration', 'Release', '--output', output],
        },
      ],
      env: { ...settings, NUGET_PACKAGES: '/cache/nuget', DOTNET_CLI_HOME: '/home/app' },
      path: dotnet.path,
      toolchain: dotnet.mounts,
      cacheDirectories: ['nuget'],
      runtimeEnv: settings,
      async defaultProcesses(built): Promise<Readonly<Record<string, string>>> {
        if (!(await built.hasFile(`${output}/${assembly}.dll`))) return {};
        return { web: `ASPNETCORE_URLS=http://0.0.0.0:$PORT dotnet ${output}/${assembly}.dll` };
      },
      processHint: `dotnet publish left no ${output}/${assembly}.dll. Add a Procfile with a line as: web: dotnet ${output}/<name>.dll`,
    };
  },
};

/** The only project at the top of the source. */
async function findProject(source: SourceTree): Promise<string | undefined> {
  const projects = (await source.list('')).filter((name) => projectFile.test(name));
  return projects.length === 1 ? projects[0] : undefined;
}

/** Pins come first, then global.json, whose SDK may be a later one of the same hundred, then the framework that the project targets. */
async function findSdkRequest(source: SourceTree, project: string, pins: VersionPins): Promise<VersionRequest | undefined> {
  const pinned = pins.get('dotnet');
  if (pinned !== undefined) return pinned;
  const text = await source.readText('global.json');
  const named = text === undefined ? undefined : parseVersion(text);
  const [, release, feature] = /^(\d+\.\d+)\.(\d)\d\d$/.exec(named ?? '') ?? [];
  if (named !== undefined && release !== undefined)
    return { version: `${named} - ${release}.${feature}99`, source: 'global.json' };
  const framework = /<TargetFrameworks?>[^<]{0,80}?net(\d+)\.0/.exec(project)?.[1];
  return framework === undefined ? undefined : { version: `>=${framework}`, source: 'the target framework' };
}

/** @throws BuildFailure if the file is not valid */
function parseVersion(text: string): string | undefined {
  try {
    return schema.parse(JSON5.parse(text)).sdk?.version;
  } catch (error) {
    throw new BuildFailure(`global.json is not valid: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}`);
  }
}
