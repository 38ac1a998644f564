import type { Builder } from '../plans/builder.ts';
import { describeVersion } from '../plans/describe-version.ts';

const shipment = 'build/erlang-shipment';

export const gleamBuilder: Builder = {
  name: 'gleam',
  looksFor: 'gleam.toml (Gleam)',
  replacesSystem: true,
  async detect(source) {
    return (await source.hasFile('gleam.toml')) ? { what: 'Gleam app', why: 'gleam.toml' } : undefined;
  },
  async plan(source, { toolchains, pins }) {
    const manifest = (await source.readText('gleam.toml')) ?? '';
    const constraint = /^gleam\s{0,9}=\s{0,9}"([^"\n]{1,80})"/m.exec(manifest)?.[1];
    const request =
      pins.get('gleam') ?? (constraint === undefined ? undefined : { version: constraint, source: '"gleam" in gleam.toml' });
    const gleam = await toolchains.findLanguage('gleam', request);
    const erlang = await toolchains.findLanguage('erlang', pins.get('erlang'));
    return {
      notes: [`${describeVersion('Gleam', gleam.version, request)} and Erlang/OTP ${erlang.version}`],
      steps: [{ title: 'gleam export erlang-shipment', argv: ['gleam', 'export', 'erlang-shipment'] }],
      // Gleam finds out by itself what of `build` is still valid.
      env: { XDG_CACHE_HOME: '/cache/gleam' },
      path: [...gleam.path, ...erlang.path],
      toolchain: [...erlang.mounts, ...gleam.mounts],
      cacheDirectories: ['gleam'],
      runtimeEnv: {},
      async defaultProcesses(built): Promise<Readonly<Record<string, string>>> {
        return (await built.hasFile(`${shipment}/entrypoint.sh`)) ? { web: `${shipment}/entrypoint.sh run` } : {};
      },
      processHint: `gleam left no ${shipment}. Add a Procfile with a line as: web: gleam run`,
    };
  },
};
