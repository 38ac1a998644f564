import type { VersionRequest } from '../../toolchains/toolchain.ts';
import type { Toolchains } from '../../toolchains/toolchains.ts';
import type { BuildStep } from '../plans/build-plan.ts';
import type { Builder } from '../plans/builder.ts';
import { describeVersion } from '../plans/describe-version.ts';
import type { SourceTree } from '../plans/source-tree.ts';
import { treeKey } from '../plans/tree-key.ts';
import type { VersionPins } from '../plans/version-pins.ts';

const releases = '_build/prod/rel';

export const elixirBuilder: Builder = {
  name: 'elixir',
  looksFor: 'mix.exs (Elixir)',
  replacesSystem: true,
  async detect(source) {
    return (await source.hasFile('mix.exs')) ? { what: 'Elixir app', why: 'mix.exs' } : undefined;
  },
  async plan(source, { toolchains, env, pins, cache }) {
    const mix = (await source.readText('mix.exs')) ?? '';
    const lock = (await source.readText('mix.lock')) ?? '';
    const request = findElixirRequest(mix, pins);
    const tools = await findTools(toolchains, pins, request);
    const node = (await source.hasFile('assets/package.json')) ? await toolchains.findNode(pins.get('node')) : undefined;
    const phoenix = /\{\s{0,9}:phoenix\b/.test(mix);
    const configuration = await Promise.all(['config/config.exs', 'config/prod.exs'].map((file) => source.readText(file)));
    const key = treeKey(tools.versions, mix, lock, configuration);
    const settings = { MIX_ENV: 'prod', ELIXIR_ERL_OPTIONS: '+fnu', RELEASE_DISTRIBUTION: 'none' };
    const released = isReleased(mix);
    return {
      notes: [
        describeVersion('Elixir', tools.versions[0], request),
        ...(phoenix && env['SECRET_KEY_BASE'] === undefined
          ? ['Phoenix needs a secret to start: paas config:set SECRET_KEY_BASE=$(openssl rand -base64 48)']
          : []),
      ],
      steps: [
        ...dependencySteps(mix, lock, cache),
        ...(node === undefined
          ? []
          : [{ title: 'npm install in assets', argv: ['npm', 'install', '--prefix', 'assets', '--no-audit', '--no-fund'] }]),
        ...mixSteps([
          ...(/"?assets\.setup"?:/.test(mix) ? ['assets.setup'] : []),
          'compile',
          ...(/"?assets\.deploy"?:/.test(mix) ? ['assets.deploy'] : []),
        ]),
        ...(released ? [{ title: 'mix release', argv: ['mix', 'release', '--overwrite'] }] : []),
      ],
      env: {
        ...settings,
        MIX_HOME: '/cache/mix',
        HEX_HOME: '/cache/hex',
        ...(node === undefined ? {} : { npm_config_cache: '/cache/npm' }),
      },
      path: [...tools.path, ...(node?.path ?? [])],
      toolchain: [...tools.toolchain, ...(node?.mounts ?? [])],
      cacheDirectories: ['mix', 'hex', ...(node === undefined ? [] : ['npm'])],
      ...(lock.trim() === '' ? {} : { tree: { paths: ['deps', '_build'], key } }),
      runtimeEnv: { ...settings, ...(phoenix ? { PHX_SERVER: 'true' } : {}) },
      defaultProcesses: (built) => findProcesses(built, { released, phoenix }),
      processHint:
        'mix release left several releases, and none is called web. Add a Procfile with a line as: web: _build/prod/rel/<name>/bin/<name> start',
    };
  },
};

/** Pins come first, then the oldest Elixir that mix.exs allows, by its own rules. */
function findElixirRequest(mix: string, pins: VersionPins): VersionRequest | undefined {
  const pinned = pins.get('elixir');
  if (pinned !== undefined) return { ...pinned, version: pinned.version.replace(/-otp-\d+$/, '') };
  const version = /^\s{0,40}elixir:\s{0,9}"([^"\n]{1,80})"/m.exec(mix)?.[1];
  return version === undefined ? undefined : { version, source: '"elixir" in mix.exs' };
}

interface ElixirTools {
  /** Elixir's first. */
  readonly versions: readonly [string, ...string[]];
  readonly path: readonly string[];
  readonly toolchain: Awaited<ReturnType<Toolchains['findLanguage']>>['mounts'];
}

/** Debian's Elixir comes with an Erlang; another Elixir, or another Erlang that is asked for, does not. */
async function findTools(toolchains: Toolchains, pins: VersionPins, request: VersionRequest | undefined): Promise<ElixirTools> {
  const elixir = await toolchains.findLanguage('elixir', request);
  const ofDebian = elixir.mounts.some(({ kind }) => kind === 'stored');
  const wanted = pins.get('erlang');
  const alone = ofDebian && (wanted === undefined || wanted.version === 'latest');
  const erlang = alone ? undefined : await toolchains.findLanguage('erlang', wanted);
  return {
    versions: [elixir.version, ...(erlang === undefined ? [] : [erlang.version])],
    path: [...elixir.path, ...(erlang?.path ?? [])],
    // Debian's Erlang alone has no Elixir: the root of Elixir comes last, and covers it.
    toolchain: [...(erlang?.mounts ?? []), ...elixir.mounts],
  };
}

function dependencySteps(mix: string, lock: string, cache: 'cold' | 'warm'): readonly BuildStep[] {
  if (lock.trim() === '' && !/\{\s{0,9}:\w+\s{0,9},/.test(mix)) return [];
  const title = `mix deps.get, cache ${cache}`;
  const reused = `${title}, dependencies reused`;
  return [
    { title: 'mix local.hex', argv: ['mix', 'local.hex', '--force', '--if-missing'], when: 'unless-restored' },
    { title: 'mix local.rebar', argv: ['mix', 'local.rebar', '--force', '--if-missing'], when: 'unless-restored' },
    { title: reused, argv: ['true'], when: 'if-restored', skipIf: async () => reused },
    { title, argv: ['mix', 'deps.get', '--only', 'prod'], when: 'unless-restored' },
    { title: 'mix deps.compile', argv: ['mix', 'deps.compile'], when: 'unless-restored', savesTree: true },
  ];
}

function mixSteps(tasks: readonly string[]): readonly BuildStep[] {
  return tasks.map((task) => ({ title: `mix ${task}`, argv: ['mix', task] }));
}

/** An umbrella has no release unless it says what is in one. */
function isReleased(mix: string): boolean {
  return !/\bapps_path:/.test(mix) || /\breleases:/.test(mix);
}

async function findProcesses(
  built: SourceTree,
  { released, phoenix }: { released: boolean; phoenix: boolean },
): Promise<Readonly<Record<string, string>>> {
  if (!released) return { web: phoenix ? 'mix phx.server' : 'mix run --no-halt' };
  const names = (await built.list(releases)).filter((name) => /^\w+$/.test(name));
  const chosen = names.length === 1 ? names[0] : names.find((name) => name === 'web');
  return chosen === undefined ? {} : { web: `${releases}/${chosen}/bin/${chosen} start` };
}
