/** What the steps of the build pipeline do, as a script: with the addresses, Secrets and images that the driver names in its objects. */
import { createServer } from 'node:http';
import { fetch } from 'undici';
import type { BuildId } from '#shared/ids.ts';
import { buildNamespace } from '#shared/names.ts';
import type { BuildAddress, BuildSpec, Builds, SourceAccess } from '#shared/platform/builds.ts';
import { readTar } from '#shared/sources/tar-reader.ts';
import { writeTar } from '#shared/sources/tar-writer.ts';
import { listenOnLoopback } from '#test/support/servers/listen-on-loopback.ts';
import { buildRunName } from '../builds/build-names.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { pushImage } from './fake-registry.ts';
import type { StepResult, StepRun } from './scripted-tekton.ts';

/** The part of the control plane that pipelines ask. */
export interface PipelineEntryPoint {
  /** The builds of the driver, with addresses at which this process answers. */
  wrap(builds: Builds): Builds;
  /** Statuses that pipelines have reported, by build. */
  readonly reports: ReadonlyMap<BuildId, string>;
  stop(): Promise<void>;
}

export async function startPipelineEntryPoint(): Promise<PipelineEntryPoint> {
  const sources = new Map<string, SourceAccess>();
  const callbacks = new Map<string, { buildId: BuildId; builds: Builds }>();
  const reports = new Map<BuildId, string>();
  const server = createServer((request, response) => {
    const token = request.headers.authorization?.replace('Bearer ', '') ?? '';
    void (async () => {
      const source = sources.get(token);
      const callback = callbacks.get(token);
      sources.delete(token);
      if (source !== undefined && request.method === 'GET') {
        response.writeHead(200);
        for await (const chunk of writeTar(source.open())) response.write(chunk);
      } else if (callback !== undefined && request.method === 'POST') {
        const { status } = JSON.parse(Buffer.concat(await request.toArray()).toString()) as { status: string };
        reports.set(callback.buildId, status);
        await callback.builds.checkBuild(callback.buildId);
        response.writeHead(202);
      } else response.writeHead(401);
      response.end();
    })();
  });
  const listening = await listenOnLoopback(server);
  const origin = `http://${listening.host}`;
  const address = (path: string): BuildAddress => ({ url: `${origin}/${path}`, token: crypto.randomUUID() });
  return {
    reports,
    wrap(builds) {
      const startBuild = (spec: BuildSpec): Promise<void> =>
        builds.startBuild({
          ...spec,
          source: {
            ...spec.source,
            async createAddress() {
              const made = address('source');
              sources.set(made.token, spec.source);
              return made;
            },
          },
          async createCallback() {
            const made = address('complete');
            callbacks.set(made.token, { buildId: spec.buildId, builds });
            return made;
          },
        });
      return { ...builds, startBuild };
    },
    stop: () => listening.close(),
  };
}

type Files = ReadonlyMap<string, string>;

/** Steps of the lifecycle. A source with a file `failing`, `endless` or `hungry` builds like that. */
export function createScriptedLifecycle(cluster: Cluster): (step: StepRun) => Promise<StepResult> {
  const sources = new Map<string, Files>();
  const digests = new Map<string, string>();
  const valueOf = ({ step }: StepRun, name: string): string => step.env?.find((each) => each.name === name)?.value ?? '';

  async function readToken(run: StepRun['run'], key: string): Promise<string> {
    const secret = await cluster.read({ kind: kinds.secret, name: run.metadata.name, namespace: buildNamespace });
    return Buffer.from(secret?.data?.[key] ?? '', 'base64')
      .toString()
      .replace('Authorization: ', '');
  }

  return async (stepRun) => {
    const { step, run, print, signal } = stepRun;
    const files = sources.get(run.metadata.name) ?? new Map<string, string>();
    switch (step.name) {
      case 'fetch': {
        const authorization = await readToken(run, 'source');
        const response = await fetch(valueOf(stepRun, 'SOURCE_URL'), { headers: { authorization }, signal });
        if (response.status === 401) return { exitCode: 41 };
        if (response.body === null) return { exitCode: 42 };
        sources.set(run.metadata.name, await readFiles(response.body));
        return { exitCode: 0 };
      }
      case 'detect': {
        const isKnown = ['Procfile', 'package.json'].some((name) => files.has(name));
        await print(isKnown ? 'paketo-buildpacks/procfile 5.11.2' : 'ERROR: No buildpack groups passed detection.');
        return { exitCode: isKnown ? 0 : 20 };
      }
      case 'build':
        await print('Paketo Buildpack for Procfile 5.11.2');
        if (files.has('failing')) {
          await print('ERROR: failed to build: exit status 1');
          return { exitCode: 51 };
        }
        if (files.has('hungry')) return { exitCode: 137, reason: 'OOMKilled' };
        if (files.has('endless')) {
          await print('started');
          await new Promise(() => undefined);
        }
        return { exitCode: 0 };
      case 'export':
      case 'push': {
        const target = step.args?.at(-1)?.includes('/') === true ? (step.args.at(-1) ?? '') : valueOf(stepRun, 'IMAGE');
        const [, repository = '', tag = ''] = /^(.+):([^:/]+)$/.exec(target) ?? [];
        const config = {
          config: {
            Entrypoint: step.name === 'push' ? ['/server'] : ['/cnb/process/web'],
            Labels: { 'io.buildpacks.build.metadata': JSON.stringify(metadata) },
          },
        };
        const digest = await pushImage({ repository, tag, config, layer: JSON.stringify([...files]) });
        digests.set(run.metadata.name, digest);
        await print(`*** Images (${digest.slice(0, 19)}):`);
        return { exitCode: 0 };
      }
      case 'result':
        return {
          exitCode: 0,
          results: { IMAGE_URL: valueOf(stepRun, 'IMAGE'), IMAGE_DIGEST: digests.get(run.metadata.name) ?? '' },
        };
      case 'report': {
        const authorization = await readToken(run, 'callback');
        const status = valueOf(stepRun, 'BUILD_STATUS').toLowerCase();
        await fetch(valueOf(stepRun, 'CALLBACK_URL'), {
          method: 'POST',
          headers: { authorization },
          body: JSON.stringify({ status }),
        });
        return { exitCode: 0 };
      }
      default:
        return { exitCode: 0 };
    }
  };
}

const metadata = {
  processes: [
    {
      type: 'web',
      command: ['bash', '-c', 'node server.js'],
      args: [],
      direct: true,
      buildpackID: 'paketo-buildpacks/node-start',
    },
  ],
};

async function readFiles(body: AsyncIterable<Uint8Array>): Promise<Files> {
  const files = new Map<string, string>();
  for await (const { path, content } of readTar(body, tarLimits)) {
    const chunks: Uint8Array[] = [];
    for await (const chunk of content) chunks.push(chunk);
    files.set(path, Buffer.concat(chunks).toString());
  }
  return files;
}

const tarLimits = { entries: 1000, bytes: 1_000_000 };

/** Of a build that was started: the name of its task's run. */
export function taskRunName(buildId: BuildId): string {
  return `${buildRunName(buildId)}-build`;
}
