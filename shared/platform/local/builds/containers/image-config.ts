/** From what `buildah inspect` prints to how the image is run. */
import { z } from 'zod';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import { joinWords } from '#shared/platform/command-words.ts';
import { type ContainerConfig, stopSignals } from '../../images/container-config.ts';

const list = z.array(z.string()).nullish();
const schema = z.looseObject({
  FromImageDigest: z.string().optional(),
  Docker: z.looseObject({
    architecture: z.string().optional(),
    config: z
      .looseObject({
        User: z.string().optional(),
        ExposedPorts: z.record(z.string(), z.unknown()).nullish(),
        Env: list,
        Entrypoint: list,
        Cmd: list,
        WorkingDir: z.string().optional(),
        StopSignal: z.string().optional(),
        Volumes: z.record(z.string(), z.unknown()).nullish(),
        Healthcheck: z.looseObject({ Test: list }).nullish(),
      })
      .nullish(),
  }),
});

/** How an image is run, and what a person should know about it. */
export interface ImageConfig {
  readonly container: ContainerConfig;
  /** Variables of ENV. */
  readonly env: Readonly<Record<string, string>>;
  /** ENTRYPOINT and CMD as a command line; undefined if there are none. */
  readonly command: string | undefined;
  readonly notes: readonly string[];
}

/** Files of the image that name its users; empty where there are none. */
export interface UserFiles {
  readonly passwd: string;
  readonly group: string;
}

const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * @param inspected what `buildah inspect --type image` printed
 * @throws BuildFailure for a USER that the image does not have, and for a NUL
 */
export function readImageConfig(inspected: string, files: UserFiles): ImageConfig {
  const config = schema.parse(JSON.parse(inspected)).Docker.config ?? {};
  const words = [...(config.Entrypoint ?? []), ...(config.Cmd ?? [])];
  const texts = [...words, ...(config.Env ?? []), config.User ?? '', config.WorkingDir ?? ''];
  if (texts.some((text) => text.includes('\0')))
    throw new BuildFailure('The configuration of the image contains a NUL character, which no program can be given.');
  const user = resolveUser(config.User ?? '', files);
  const ports = Object.keys(config.ExposedPorts ?? {}).flatMap((text) => {
    const [, port] = /^(\d{1,5})(?:\/tcp)?$/.exec(text) ?? [];
    return port === undefined ? [] : [Number(port)];
  });
  const stopSignal = readSignal(config.StopSignal ?? '');
  const volumes = Object.keys(config.Volumes ?? {});
  return {
    container: {
      ...user,
      workdir: absolute(config.WorkingDir ?? ''),
      ports,
      ...(stopSignal === undefined ? {} : { stopSignal }),
    },
    env: { PATH: defaultPath, ...Object.fromEntries((config.Env ?? []).map(splitVariable)) },
    command: words.length === 0 ? undefined : joinWords(words),
    notes: [
      ...(config.Healthcheck?.Test === undefined || config.Healthcheck.Test?.[0] === 'NONE'
        ? []
        : ['HEALTHCHECK is not used. The platform checks that the app accepts connections on PORT.']),
      ...(volumes.length === 0
        ? []
        : [`VOLUME ${volumes.join(' ')}: what is written there is lost when the instance ends. Keep data in an add-on.`]),
    ],
  };
}

function splitVariable(text: string): readonly [string, string] {
  const at = text.indexOf('=');
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

function absolute(path: string): string {
  return path.startsWith('/') ? path : `/${path}`;
}

const signalNumbers: Readonly<Record<string, string>> = {
  1: 'HUP',
  2: 'INT',
  3: 'QUIT',
  9: 'KILL',
  10: 'USR1',
  12: 'USR2',
  28: 'WINCH',
};

/** @param text 'SIGQUIT', 'QUIT' or '3' */
function readSignal(text: string): ContainerConfig['stopSignal'] {
  const name = signalNumbers[text] ?? text.replace(/^SIG/, '');
  return stopSignals.find((signal) => signal === `SIG${name}`);
}

/** `USER` as a name or a number, with or without a group, by the image's own files. */
function resolveUser(text: string, { passwd, group }: UserFiles): Pick<ContainerConfig, 'uid' | 'gid' | 'home'> {
  const [name = '', groupName] = text.split(':');
  const wanted = name === '' ? '0' : name;
  const users = passwd.split('\n').map((line) => line.split(':'));
  const user = users.find(([known]) => known === wanted) ?? users.find(([, , uid]) => uid === wanted);
  const uid = Number(user?.[2] ?? wanted);
  if (!isId(uid)) throw new BuildFailure(`USER ${text}: the image has no such user in /etc/passwd.`);
  const groups = group.split('\n').map((line) => line.split(':'));
  const gid = Number(
    groupName === undefined ? (user?.[3] ?? 0) : (groups.find(([known]) => known === groupName)?.[2] ?? groupName),
  );
  if (!isId(gid)) throw new BuildFailure(`USER ${text}: the image has no such group in /etc/group.`);
  const home = user?.[5] ?? '';
  return { uid, gid, home: home === '' ? '/' : absolute(home) };
}

/** Whether the container has this user or group. */
function isId(id: number): boolean {
  return Number.isInteger(id) && id >= 0 && id < 65536;
}
