import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { connect } from 'node:net';
import { basename, dirname } from 'node:path';

const answerMilliseconds = 2000;

/**
 * Sends commands over one connection to a unix socket and resolves with the answers, which must have one line each ('+OK', ':1').
 * @throws Error if nothing listens, a command is refused, or the answers take longer than 2 s
 */
export async function askKvstore(socketPath: string, commands: readonly (readonly string[])[]): Promise<readonly string[]> {
  // By way of its directory, since a path to a socket has at most 107 bytes.
  await using directory = await open(dirname(socketPath), constants.O_RDONLY | constants.O_DIRECTORY);
  return await ask(`/proc/self/fd/${directory.fd}/${basename(socketPath)}`, commands);
}

function ask(path: string, commands: readonly (readonly string[])[]): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path, timeout: answerMilliseconds });
    const fail = (error: Error): void => {
      socket.destroy();
      reject(error);
    };
    let text = '';
    socket.setEncoding('utf8');
    socket.once('connect', () => socket.write(commands.map(encodeCommand).join('')));
    socket.on('data', (chunk: string) => {
      text += chunk;
      const answers = text.split('\r\n').slice(0, -1);
      const refused = answers.find((answer) => answer.startsWith('-'));
      if (refused !== undefined) return fail(new Error(`The key-value server refused: ${refused.slice(1)}`));
      if (answers.length < commands.length) return;
      socket.destroy();
      resolve(answers);
    });
    socket.once('timeout', () => fail(new Error('The key-value server does not answer.')));
    socket.once('error', fail);
    socket.once('close', () => fail(new Error('The key-value server closed the connection.')));
  });
}

function encodeCommand(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`;
}
