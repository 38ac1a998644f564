/** From how a step ended to one line that says what failed and what mends it. */

/** A file system of a build. */
export interface FullestVolume {
  readonly isFull: boolean;
  /** What to say when a program found no room in it. */
  readonly message: string;
}

export interface StepFailure {
  readonly argv: readonly string[];
  readonly exitCode: number;
  readonly outOfMemory: boolean;
  readonly diskFull: boolean;
  /** Of the build's own file systems the one with the least room; undefined where it has none. */
  readonly volume: FullestVolume | undefined;
  /** The tool's last lines. */
  readonly tail: readonly string[];
  readonly memoryBytes: number;
}

interface Known {
  readonly pattern: RegExp;
  readonly cause: (match: RegExpExecArray) => string;
}

const known: readonly Known[] = [
  {
    pattern: /`npm ci` can only install packages when your package\.json and package-lock\.json|npm (?:error|ERR!) code EUSAGE/,
    cause: () => 'package-lock.json does not match package.json. Run `npm install` and commit package-lock.json.',
  },
  {
    pattern: /ERR_PNPM_OUTDATED_LOCKFILE/,
    cause: () => 'pnpm-lock.yaml does not match package.json. Run `pnpm install` and commit pnpm-lock.yaml.',
  },
  {
    pattern: /Your lockfile needs to be updated|YN0028/,
    cause: () => 'yarn.lock does not match package.json. Run `yarn install` and commit yarn.lock.',
  },
  { pattern: /[Mm]issing script:? "?([\w:.-]+)"?/, cause: ([, name]) => `package.json has no script "${name}".` },
  {
    pattern:
      /npm (?:error|ERR!) 404 {1,9}(?:The requested resource )?'?([^'\s]{1,300})'? (?:is not in this registry|could not be found)/,
    cause: ([, name]) => `The package ${name} is not in the registry. Check its name and version in package.json.`,
  },
  {
    pattern: /ETARGET|No matching version found for (\S+?)\.?$/m,
    cause: ([, name]) => `There is no such version${name === undefined ? '' : `: ${name}`}.`,
  },
  {
    pattern: /ERROR: No matching distribution found for (.+)$/m,
    cause: ([, name]) => `There is no Python package ${name}. Check its name and version, and whether it supports this Python.`,
  },
  {
    pattern: /missing go\.sum entry|updates to go\.(?:mod|sum) needed/,
    cause: () => 'go.sum does not match go.mod. Run `go mod tidy` and commit go.sum.',
  },
  {
    pattern: /go\.mod requires go >= (\S+) \(running go (\S+?);?[ )]/,
    cause: ([, wanted, has]) => `go.mod asks for Go ${wanted}, and this platform has ${has}.`,
  },
  {
    pattern: /Could not resolve host: ([\w.-]{1,200})|Import 'https?:\/\/([\w.-]{1,200})[^']{0,500}' failed/,
    cause: ([, git, imported]) =>
      `${git ?? imported} could not be reached. Try again. If that does not help, the operator has to check the network of this platform.`,
  },
  {
    pattern: /The lockfile at `uv\.lock` needs to be updated/,
    cause: () => 'uv.lock does not match pyproject.toml. Run `uv lock` and commit uv.lock.',
  },
  {
    pattern: /pyproject\.toml changed significantly since poetry\.lock was last generated/,
    cause: () => 'poetry.lock does not match pyproject.toml. Run `poetry lock` and commit poetry.lock.',
  },
  {
    pattern: /lockfile had changes, but lockfile is frozen/,
    cause: () => 'The lockfile of Bun does not match package.json. Run `bun install` and commit bun.lock.',
  },
  {
    pattern:
      /npm (?:error|ERR!) (?:code|errno) (?:EAI_AGAIN|ENOTFOUND|ETIMEDOUT|ECONNREFUSED|ECONNRESET)|Temporary failure in name resolution|dial tcp: lookup/,
    cause: () =>
      'A package registry could not be reached. Try again. If that does not help, the operator has to check the network of this platform.',
  },
];

export function explainFailure(failure: StepFailure): string {
  const text = failure.tail.join('\n');
  if (failure.outOfMemory || /JavaScript heap out of memory|MemoryError|cannot allocate memory/i.test(text)) {
    return `Out of memory: a build may use ${Math.round(failure.memoryBytes / 1024 / 1024)} MiB, and \`${describe(failure.argv)}\` wanted more.`;
  }
  const lacksRoom = /ENOSPC|[Nn]o space left on device/.test(text);
  if (!failure.diskFull && failure.volume !== undefined && (failure.volume.isFull || lacksRoom)) return failure.volume.message;
  if (failure.diskFull || lacksRoom) {
    return "The platform's disk is full. Nothing is wrong with the app: its operator has to make room, then push again.";
  }
  if (/File too large|EFBIG/.test(text)) return 'A file grew larger than a build may write.';
  for (const { pattern, cause } of known) {
    const match = pattern.exec(text);
    if (match !== null) return cause(match);
  }
  return `\`${describe(failure.argv)}\` exited with code ${failure.exitCode}.`;
}

/** The command as a person would type it: programs without their paths, package managers without their wrapping. */
function describe(argv: readonly string[]): string {
  const wrapped = argv.indexOf('--');
  const shown = argv[1] === 'exec' && wrapped > 0 ? argv.slice(wrapped + 1) : argv;
  return shown.map((word, index) => (index === 0 ? word.slice(word.lastIndexOf('/') + 1) : word)).join(' ');
}
