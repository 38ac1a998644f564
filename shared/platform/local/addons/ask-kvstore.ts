import { connect } from 'node:net';

const answerMilliseconds = 2000;

/**
 * Sends commands over one connection and resolves with their answers, which must be of one line each ('+OK', ':1').
 * @throws Error when it does not listen, refuses a command, or takes longer than 2 s
 */
export function askKvstore(port: number, commands: readonly (readonly string[])[]): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', timeout: answerMilliseconds });
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
    socket.once('close', () => fail(new Error('The key-value server hung up.')));
  });
}

function encodeCommand(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`;
}
