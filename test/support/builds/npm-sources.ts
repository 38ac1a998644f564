/** A Node.js server that answers every request with the value of an expression. */
export const serverOf = (body: string): string =>
  `require('node:http').createServer((_, answer) => answer.end(${body})).listen(process.env.PORT);\n`;
/** Depends on one small package without dependencies of its own, as each lockfile has it. */
export const manifest = (more: object = {}): string =>
  JSON.stringify({ name: 'hello', version: '1.0.0', dependencies: { 'is-number': '7.0.0' }, ...more });
export const integrity = 'sha512-41Cifkg6e8TylSpdtTpeLVMqvSBEVzTttHvERD741+pnZ8ANv0004MRL43QKPDlK9cGvNp6NZWZUBlbGXYxxng==';
export const npmLock = (version = '7.0.0'): string =>
  JSON.stringify({
    name: 'hello',
    version: '1.0.0',
    lockfileVersion: 3,
    requires: true,
    packages: {
      '': { name: 'hello', version: '1.0.0', dependencies: { 'is-number': '7.0.0' } },
      'node_modules/is-number': { version, integrity },
    },
  });
/** Requires that package, and answers `true`. */
export const usesIt = serverOf(`String(require('is-number')(5))`);
