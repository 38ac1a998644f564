import type { Pushes } from '#shared/core/pushes/pushes.ts';
import { AppError } from '#shared/errors.ts';
import type { GitServer } from '#shared/git/git-storage.ts';
import { isArchiveRequest, parseGitCommand } from '#shared/git/protocol/git-request.ts';
import type { CommandHandler } from './command-handler.ts';

/** What git itself exits with when it will not go on. */
const usageStatus = 128;

/** The innermost handler: the two git services on the repositories of the person's own apps. */
export function gitServed(pushes: Pushes, git: GitServer): CommandHandler {
  return async (command) => {
    const wanted = parseGitCommand(command.text ?? '');
    if (wanted === undefined) {
      await command.say(
        'Only git is spoken here, on the repository of an app: ssh://git@<host>:<port>/<app>.git',
        isArchiveRequest(command.text)
          ? 'git archive --remote is not served: use git clone --depth 1'
          : 'What else can be done with an app: paas help',
      );
      return usageStatus;
    }
    const pushing = wanted.service === 'receive-pack';
    const repository = await pushes
      .openRepository(command.identity, wanted.appName, pushing ? 'write' : 'read')
      .catch((error: unknown) => {
        if (!(error instanceof AppError) || error.code !== 'not_found') throw error;
        throw new AppError('not_found', `No such app, or it is not yours: ${wanted.appName}. \`paas apps\` lists yours.`, {
          cause: error,
        });
      });
    if (!pushing) return git.uploadPack(repository, command.stream);
    const { exitStatus, requestedRefs } = await git.receivePack(repository, command.stream, repository.applyPush);
    if (exitStatus === 0 && requestedRefs === 0) {
      await command.say(
        `Nothing new was sent. To build ${repository.appName} again: paas builds:create -a ${repository.appName}`,
      );
    }
    return exitStatus;
  };
}
