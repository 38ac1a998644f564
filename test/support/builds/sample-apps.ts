/** Small real apps: each answers `/` with a word and has nothing to download. */

export function nodeApp(word: string): Record<string, string> {
  return {
    'package.json': JSON.stringify({ name: 'hello', version: '1.0.0', private: true, scripts: { start: 'node server.js' } }),
    'package-lock.json': JSON.stringify({
      name: 'hello',
      version: '1.0.0',
      lockfileVersion: 3,
      requires: true,
      packages: { '': { name: 'hello', version: '1.0.0' } },
    }),
    'server.js': `const { createServer } = require('node:http');
const server = createServer((request, response) => {
  if (request.url === '/env') return response.end(JSON.stringify(process.env));
  response.end(${JSON.stringify(word)});
});
server.listen(process.env.PORT, () => console.log('listening on ' + process.env.PORT));
process.on('SIGTERM', () => server.close(() => process.exit(0)));
`,
  };
}

/** Builds well and exits before it listens. */
export function crashingApp(): Record<string, string> {
  return { ...nodeApp('never'), 'server.js': `console.error('cannot find my shoes');\nprocess.exit(3);\n` };
}

/** Its build script fails. */
export function unbuildableApp(): Record<string, string> {
  return {
    ...nodeApp('never'),
    'package.json': JSON.stringify({
      name: 'hello',
      version: '1.0.0',
      private: true,
      scripts: { start: 'node server.js', build: `node -e "console.error('the build is broken'); process.exit(7)"` },
    }),
  };
}

/** A build that takes a while and says so. */
export function slowApp(word: string, seconds: number): Record<string, string> {
  return {
    ...nodeApp(word),
    'package.json': JSON.stringify({
      name: 'hello',
      version: '1.0.0',
      private: true,
      scripts: {
        start: 'node server.js',
        build: `node -e "console.log('building slowly'); setTimeout(() => {}, ${seconds * 1000})"`,
      },
    }),
  };
}
