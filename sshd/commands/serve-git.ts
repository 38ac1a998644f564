import type { Pushes } from '#shared/core/pushes/pushes.ts';
import { AppError } from '#shared/errors.ts';
import type { GitServer } from '#shared/git/git-storage.ts';
import { isArchiveRequest, isLargeFilesRequest, parseGitCommand } from '#shared/git/protocol/git-request.ts';
import type { CommandHandler } from './command-handler.ts';

/** The exit status of git itself after a fatal error. */
const fatalStatus = 128;

/** Serves the two git services on the repositories of the person's own apps, and refuses every other command. */
export function serveGit(pushes: Pushes, git: GitServer): CommandHandler {
  return async (command) => {
    const parsed = parseGitCommand(command.text ?? '');
    if (isLargeFilesRequest(command.text)) {
      await command.printError(
        'The repositories of this platform take no large files of Git LFS. To deploy this one, either',
        '- follow its copy at GitHub, GitLab or Gitea, whose large files are fetched: paas git:source:set URL',
        "- or make them ordinary files, up to 100 MiB each: git lfs migrate export --everything --include='*'",
      );
      return fatalStatus;
    }
    if (parsed === undefined) {
      await command.printError(
        'This server runs only git commands, on the repository of an app: ssh://git@<host>:<port>/<app>.git',
        isArchiveRequest(command.text)
          ? 'git archive --remote is not supported. Use instead: git clone --depth 1'
          : 'To see what else you can do with an app, run: paas help',
      );
      return fatalStatus;
    }
    const isPush = parsed.service === 'receive-pack';
    const repository = await pushes
      .openRepository(command.identity, parsed.appName, isPush ? 'write' : 'read')
      .catch((error: unknown) => {
        if (!(error instanceof AppError) || error.code !== 'not_found') throw error;
        throw new AppError('not_found', `No such app: ${parsed.appName}. To list your apps, run: paas apps`, { cause: error });
      });
    if (!isPush) return git.uploadPack(repository, command.stream);
    const { exitStatus, requestedRefs } = await git.receivePack(repository, command.stream, repository.applyPush);
    if (exitStatus === 0 && requestedRefs === 0) {
      await command.printError(
        `Nothing to push. To build ${repository.appName} again, run: paas builds:create -a ${repository.appName}`,
      );
    }
    return exitStatus;
  };
}
