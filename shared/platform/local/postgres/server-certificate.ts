import { chown, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ifMissing } from '#shared/files/if-missing.ts';
import { issueLeaf } from '#shared/tls/issue-certificate.ts';
import type { PostgresSettings } from './postgres-commands.ts';

const days = 3650;
/** The address that apps get. The local authority may sign for the loopback, not for the name `localhost`. */
const hosts = ['127.0.0.1'];
const [certificateFile, keyFile] = ['server.crt', 'server.key'];

/** What a server needs to accept TLS, besides connections without it. The files are in the cluster, where PostgreSQL looks for them. */
export const tlsSettings: PostgresSettings = { ssl: 'on', ssl_cert_file: certificateFile, ssl_key_file: keyFile };

/** Who signs the certificate of a server, and who may read its key. */
export interface ServerCertificateOptions {
  /** Absolute path of the cluster. */
  cluster: string;
  /** With `ca.pem` and `ca-key.pem` of the local authority. Without them the certificate signs itself. */
  authorityDirectory: string | undefined;
  /** Of the server; undefined for the user of this process. */
  uid: number | undefined;
}

/** A new certificate for each start of the server: it is valid for ten years. */
export async function issueServerCertificate({ cluster, authorityDirectory, uid }: ServerCertificateOptions): Promise<void> {
  const authority = authorityDirectory === undefined ? undefined : await readAuthority(authorityDirectory);
  const { certificate, key } = await issueLeaf(authority, hosts, days, new Date());
  const chain = [certificate, ...(authority === undefined ? [] : [authority.certificate])];
  await replace(join(cluster, certificateFile), `${chain.join('\n')}\n`, uid);
  await replace(join(cluster, keyFile), `${key}\n`, uid);
}

async function readAuthority(directory: string): Promise<{ certificate: string; key: string } | undefined> {
  const [certificate, key] = await Promise.all(
    ['ca.pem', 'ca-key.pem'].map((name) => readFile(join(directory, name), 'utf8').catch(ifMissing(undefined))),
  );
  return certificate === undefined || key === undefined ? undefined : { certificate: certificate.trimEnd(), key: key.trimEnd() };
}

async function replace(path: string, text: string, uid: number | undefined): Promise<void> {
  // A new file: nobody who could shape the cluster's directory chooses what is written to.
  await rm(path, { force: true });
  await writeFile(path, text, { mode: 0o600, flag: 'wx' });
  if (uid !== undefined) await chown(path, uid, uid);
}
