/** What one process of the fuzzer has seen, or all of them together. Plain data. */
export interface FuzzReport {
  targets: TargetReport[];
  /** Objects by chance against git's fsck. */
  objects: { count: number; differences: string[] };
  /** Refused here and taken by git, by the fault we found, and how often among those that git was asked about. */
  stricter: Record<string, number>;
  faults: Record<string, { taken: number; refused: number }>;
  /** Of code, that ran at least once. */
  blocks: number;
  /** That the process held at most. */
  peakBytes: number;
}

export interface TargetReport {
  name: string;
  inputs: number;
  taken: number;
  refused: number;
  kept: number;
  /** For one input, by the clock. */
  slowestMilliseconds: number;
  findings: string[];
}

/** Counts are added, and of what was most the most is taken. */
export function mergeReports(reports: readonly FuzzReport[]): FuzzReport {
  const most = (read: (report: FuzzReport) => number): number => Math.max(0, ...reports.map(read));
  const targets = new Map<string, TargetReport>();
  for (const target of reports.flatMap((report) => report.targets)) {
    const {
      inputs = 0,
      taken = 0,
      refused = 0,
      kept = 0,
      slowestMilliseconds = 0,
      findings = [],
    } = targets.get(target.name) ?? {};
    targets.set(target.name, {
      name: target.name,
      inputs: inputs + target.inputs,
      taken: taken + target.taken,
      refused: refused + target.refused,
      kept: Math.max(kept, target.kept),
      slowestMilliseconds: Math.max(slowestMilliseconds, target.slowestMilliseconds),
      findings: [...findings, ...target.findings],
    });
  }
  const stricter: FuzzReport['stricter'] = {};
  for (const [fault, count] of reports.flatMap((report) => Object.entries(report.stricter)))
    stricter[fault] = (stricter[fault] ?? 0) + count;
  const faults: FuzzReport['faults'] = {};
  for (const [name, { taken, refused }] of reports.flatMap((report) => Object.entries(report.faults))) {
    const before = faults[name] ?? { taken: 0, refused: 0 };
    faults[name] = { taken: before.taken + taken, refused: before.refused + refused };
  }
  return {
    targets: [...targets.values()],
    objects: {
      count: reports.reduce((sum, { objects }) => sum + objects.count, 0),
      differences: reports.flatMap(({ objects }) => objects.differences),
    },
    stricter,
    faults,
    blocks: most(({ blocks }) => blocks),
    peakBytes: most(({ peakBytes }) => peakBytes),
  };
}

/** How many findings there are. */
export function countFindings({ targets, objects }: FuzzReport): number {
  return targets.reduce((sum, { findings }) => sum + findings.length, objects.differences.length);
}

/** Lines for a person. */
export function describeReport({ targets, objects, stricter, faults, blocks, peakBytes }: FuzzReport): string[] {
  const lines = targets.flatMap(({ name, inputs, taken, refused, kept, slowestMilliseconds, findings }) => [
    `${name.padEnd(18)} ${String(inputs).padStart(9)} inputs, ${taken} taken, ${refused} refused, ${kept} kept, ` +
      `slowest ${Math.round(slowestMilliseconds)} ms, ${findings.length} findings`,
    ...findings.map((finding) => `  ${finding}`),
  ]);
  const refusedPacks = targets.filter(({ name }) => name.startsWith('pack-')).reduce((sum, { refused }) => sum + refused, 0);
  const inputs = targets.reduce((sum, target) => sum + target.inputs, 0);
  lines.push(`${inputs} inputs in all; ${refusedPacks} packs refused`);
  for (const [name, { taken, refused }] of Object.entries(faults).toSorted(([one], [other]) => (one < other ? -1 : 1)))
    lines.push(`  ${name}: ${taken} taken, ${refused} refused`);
  lines.push(`${objects.count} objects against git fsck, ${objects.differences.length} seen differently`);
  lines.push(...objects.differences.slice(0, 20).map((difference) => `  ${difference}`));
  for (const [fault, count] of Object.entries(stricter)) lines.push(`refused here only, ${count} times: ${fault}`);
  lines.push(`${blocks} blocks reached, ${Math.round(peakBytes / 1024 / 1024)} MiB held at most by a process`);
  return lines;
}
