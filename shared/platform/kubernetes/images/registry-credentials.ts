import { z } from 'zod';
import { AppError } from '#shared/errors.ts';
import { buildNamespace } from '#shared/names.ts';
import { parseJson } from '#shared/parse-json.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';

export interface Credentials {
  username: string;
  /** Secret. */
  password: string;
}

const schema = z.looseObject({
  auths: z.record(
    z.string(),
    z.looseObject({ auth: z.string().optional(), username: z.string().optional(), password: z.string().optional() }),
  ),
});

/**
 * What a Secret of the type `kubernetes.io/dockerconfigjson` in `paas-build` says about a registry.
 * @throws AppError 'internal' when the Secret is missing or says nothing about it
 */
export async function readRegistryCredentials(cluster: Cluster, name: string, host: string): Promise<Credentials> {
  const secret = await cluster.read({ kind: kinds.secret, name, namespace: buildNamespace });
  const where = `The Secret ${name} in the namespace ${buildNamespace}`;
  if (secret === undefined)
    throw new AppError('internal', `${where} does not exist. Create it: kubectl create secret docker-registry ${name} …`);
  const credentials = parseDockerConfig(Buffer.from(secret.data?.['.dockerconfigjson'] ?? '', 'base64').toString(), host);
  if (credentials === undefined) throw new AppError('internal', `${where} has no password for ${host}.`);
  return credentials;
}

/** @param text the content of a `~/.docker/config.json` */
export function parseDockerConfig(text: string, host: string): Credentials | undefined {
  const auths = schema.safeParse(parseJson(text)).data?.auths ?? {};
  const entry = auths[host] ?? auths[`https://${host}`] ?? auths[`https://${host}/v1/`];
  if (entry === undefined) return undefined;
  const { username, password, auth } = entry;
  if (username !== undefined && password !== undefined) return { username, password };
  const [, user = '', secret = ''] = /^([^:]*):(.*)$/s.exec(Buffer.from(auth ?? '', 'base64').toString()) ?? [];
  return user === '' ? undefined : { username: user, password: secret };
}
