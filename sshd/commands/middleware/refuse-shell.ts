import type { Middleware } from '#sshd/commands/command-handler.ts';

/** `ssh git@host` without a command: says who one is and what to do instead. */
export const shellGreeted: Middleware = (next) => async (command) => {
  if (command.text !== undefined) return next(command);
  await command.say(
    `Hello ${command.identity.email}, your key ${command.identity.fingerprint} works.`,
    'There is no shell here; you push apps to this address:',
    '  paas create hello      make an app, and the git remote "paas"',
    '  git push paas main     put it live',
  );
  return 0;
};
