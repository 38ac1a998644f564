import { connect } from 'node:net';
import type { AddonClient } from '#shared/platform/contract/addons.ts';

/** Sends one command. @returns the answer's text; undefined for a null @throws Error with the message of a refusal */
export function askStore(uri: string, command: readonly string[]): Promise<string | undefined> {
  const { password, hostname, port } = new URL(uri);
  const commands = [...(password === '' ? [] : [['AUTH', password]]), command];
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let text = '';
    const settle = (): void => {
      const answers = readAnswers(text);
      const refused = answers.find((answer) => answer?.startsWith('-'));
      if (refused === undefined && answers.length < commands.length) return;
      socket.destroy();
      if (refused === undefined) resolve(answers.at(-1));
      else reject(new Error(refused ?? ''));
    };
    socket.setEncoding('latin1');
    socket.on('connect', () => socket.write(commands.map(encode).join(''), 'latin1'));
    socket.on('data', (chunk: string) => {
      text += chunk;
      settle();
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('The server closed the connection.')));
  });
}

function encode(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
}

/** The complete answers in `text`: lines as they are, bulk strings without their length, undefined for null. */
function readAnswers(text: string): (string | undefined)[] {
  const answers: (string | undefined)[] = [];
  for (let at = 0; ; ) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd < 0) return answers;
    const line = text.slice(at, lineEnd);
    at = lineEnd + 2;
    if (!line.startsWith('$')) answers.push(line);
    else if (line === '$-1') answers.push(undefined);
    else {
      const length = Number(line.slice(1));
      if (text.length < at + length + 2) return answers;
      answers.push(text.slice(at, at + length));
      at += length + 2;
    }
  }
}

export const kvstoreClient: AddonClient = {
  write: async (uri, value) => void (await askStore(uri, ['SET', 'value', value])),
  read: (uri) => askStore(uri, ['GET', 'value']),
};
