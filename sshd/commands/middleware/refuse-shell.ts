import type { Middleware } from '#sshd/commands/command-handler.ts';

/** Answers `ssh git@host` without a command: greets the person and shows how to deploy. */
export const refuseShell: Middleware = (next) => async (command) => {
  if (command.text !== undefined) return next(command);
  await command.printError(
    `Hello ${command.identity.email}, you are logged in with the key ${command.identity.fingerprint}.`,
    'This server provides no shell. To deploy an app:',
    '  paas create hello      create the app, and the git remote "paas"',
    '  git push paas main     build and release it',
  );
  return 0;
};
