import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

/**
 * Signs a text by `ssh-keygen -Y sign`, which asks for a passphrase on the terminal if the key has one.
 * @param publicKeyPath of the `.pub` file; the private key is beside it or in the agent
 * @returns the armored signature, undefined if there is no private key or no ssh-keygen
 */
export async function signText(publicKeyPath: string, message: string): Promise<string | undefined> {
  const child = spawn('ssh-keygen', ['-Y', 'sign', '-q', '-n', 'paas', '-f', publicKeyPath], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const code = new Promise<number | null>((resolve) => {
    child.on('error', () => resolve(null));
    child.on('close', resolve);
  });
  child.stdin.on('error', () => undefined).end(message);
  const signature = await text(child.stdout);
  return (await code) === 0 ? signature : undefined;
}
