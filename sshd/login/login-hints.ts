/** Shown to a client that logs in with another user name than `git`. */
export function userNameHint(name: string): string {
  return `Log in as git, not as ${JSON.stringify(name.slice(0, 40))}. The address of an app is ssh://git@<host>:<port>/<app>.git`;
}

/**
 * Shown to a client whose keys were all refused, or that has none.
 * @param refused fingerprints of the keys that signed correctly but are not registered
 */
export function keyHint(refused: readonly string[]): string {
  if (refused.length === 0) {
    return [
      'You need an SSH key to push. Create one and register it:',
      '  ssh-keygen -t ed25519',
      '  paas keys:add ~/.ssh/id_ed25519.pub',
    ].join('\n');
  }
  return [
    refused.length === 1 ? 'Your SSH key is not registered:' : 'None of your SSH keys is registered:',
    ...refused.map((fingerprint) => `  ${fingerprint}`),
    'Register it with:',
    '  paas keys:add ~/.ssh/id_ed25519.pub',
    ...(refused.length < 5
      ? []
      : ['If your agent holds many keys, offer only the right one: ssh -o IdentitiesOnly=yes -i <key>']),
  ].join('\n');
}

/** Shown when the registered keys cannot be read. */
export const lookupFailedHint = 'Your SSH key could not be checked because of a problem on our side. Try again in a minute.';
