/** From what buildah printed last to one line that says what failed and how to fix it. */

interface Known {
  readonly pattern: RegExp;
  readonly cause: (match: RegExpExecArray) => string;
}

const known: readonly Known[] = [
  {
    pattern:
      /(?:unauthorized|authentication required|denied: |requested access to the resource is denied|invalid username\/password)/,
    cause: () => 'The registry refused access to the image. Check the name of the image, and the credentials for its registry.',
  },
  {
    pattern: /reading manifest (\S+) in (\S+): manifest unknown|(?:manifest|name) unknown/,
    cause: ([, reference, repository]) =>
      `The image ${repository === undefined ? '' : `${repository}:${reference} `}does not exist in its registry. Check its name and tag.`,
  },
  {
    pattern: /pinging container registry ([\w.:-]{1,200}): .*server gave HTTP response to HTTPS client/,
    cause: ([, host]) => `The registry ${host} has no HTTPS. The operator can allow that (PAAS_INSECURE_REGISTRIES).`,
  },
  {
    pattern: /pinging container registry ([\w.:-]{1,200}): /,
    cause: ([, host]) =>
      `The registry ${host} could not be reached. Try again. If that does not help, the operator has to check the network of this platform.`,
  },
  {
    pattern: /no image found in manifest list for architecture (\S+)/,
    cause: ([, architecture]) => `The image has no version for this platform's processors (${architecture}).`,
  },
  {
    pattern: /Error: .{0,40}no such file or directory: .*Dockerfile|the specified Containerfile or Dockerfile does not exist/,
    cause: () => 'There is no such Dockerfile in the source.',
  },
  {
    pattern: /Error: building at STEP "(.{1,300}?)"?: .*?(?:exit status (\d+)|$)/m,
    cause: ([, step, code]) => `The Dockerfile failed at \`${step}\`${code === undefined ? '' : ` (exit code ${code})`}.`,
  },
  {
    pattern: /^(?:time=\S+ level=\S+ msg=)?Error: (.{1,400})$/m,
    cause: ([, text]) => `The Dockerfile could not be built: ${text}`,
  },
];

/** @returns undefined if nothing of it is known */
export function explainContainerFailure(tail: readonly string[]): string | undefined {
  // RUN prints whatever it likes before.
  const text = tail.findLast((line) => /\bError: /.test(line)) ?? '';
  for (const { pattern, cause } of known) {
    const match = pattern.exec(text);
    if (match !== null) return cause(match);
  }
  return undefined;
}
