import fs from 'node:fs';
import isomorphic, { type PushResult } from 'isomorphic-git';
import http from 'isomorphic-git/http/web';
import { CliError, exitCodes } from '#cli/errors/cli-error.ts';
import { type FolderCommit, folderBranch } from '#cli/git/folder-commit.ts';

/** A repository of the platform, by HTTP. */
export interface HttpRepository {
  url: string;
  /** Those that authenticate. */
  headers: Record<string, string>;
}

/** The commit that a branch of the repository is at; undefined without one. @throws CliError when the repository cannot be read */
export async function readRemoteTip({ url, headers }: HttpRepository, branch: string): Promise<string | undefined> {
  const ref = `refs/heads/${branch}`;
  const found = await explaining(url, isomorphic.listServerRefs({ http, url, headers, prefix: ref }));
  return found.find((each) => each.ref === ref)?.oid;
}

/**
 * Pushes a commit and gives `line` what the platform prints meanwhile. Resolves when it is live.
 * @throws CliError when the platform refuses the commit
 */
export async function pushCommit(
  { url, headers }: HttpRepository,
  commit: FolderCommit,
  branch: string,
  line: (text: string) => void,
): Promise<void> {
  const remoteRef = `refs/heads/${branch}`;
  const pushing = isomorphic.push({
    fs,
    http,
    gitdir: commit.gitdir,
    url,
    headers,
    ref: folderBranch,
    remoteRef,
    onMessage: (text) => line(text.replace(/[\r\n]+$/, '')),
  });
  const result = await explaining(url, pushing.catch(refusalOf));
  const reason = result.refs[remoteRef]?.error || result.error;
  if (!result.ok || reason) throw new CliError(`${branch} was rejected: ${reason || 'the platform refused it'}.`);
}

/** The result in the error of a push that was refused. */
function refusalOf(error: unknown): PushResult {
  if (error instanceof isomorphic.Errors.GitPushError) return error.data.result;
  throw error;
}

async function explaining<Result>(url: string, work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof isomorphic.Errors.PushRejectedError)
      throw new CliError('Somebody else has pushed meanwhile. Nothing was deployed.', {
        exitCode: exitCodes.conflict,
        hint: 'Run the command again.',
        cause: error,
      });
    if (error instanceof isomorphic.Errors.HttpError)
      throw new CliError(`${url} answered ${error.data.statusCode}: ${error.data.response.trim().split('\n')[0] ?? ''}`, {
        cause: error,
      });
    throw new CliError(
      `${url} cannot be reached, or the connection broke: ${error instanceof Error ? error.message : String(error)}`,
      {
        exitCode: exitCodes.unreachable,
        hint: 'If the files had arrived already, the build goes on: paas builds:logs',
        cause: error,
      },
    );
  }
}
