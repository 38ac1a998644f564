/** The results of one process of the fuzzer, or of all of them together. Plain data. */
export interface FuzzReport {
  targets: TargetReport[];
  /** Random objects that git's fsck checked too. */
  objects: { count: number; differences: string[] };
  /** How often we rejected a pack that git accepts, by our message. Only a sample is checked by git. */
  stricter: Record<string, number>;
  /** By name of the fault. */
  faults: Record<string, { accepted: number; rejected: number }>;
  /** Blocks of code that ran at least once. */
  blocks: number;
  /** Peak memory of the process. */
  peakBytes: number;
}

/** The results of one target. */
export interface TargetReport {
  name: string;
  inputs: number;
  accepted: number;
  rejected: number;
  kept: number;
  /** Wall time of the slowest input. */
  slowestMilliseconds: number;
  findings: string[];
}

/** Adds counts, and takes the maximum of maxima. */
export function mergeReports(reports: readonly FuzzReport[]): FuzzReport {
  const most = (read: (report: FuzzReport) => number): number => Math.max(0, ...reports.map(read));
  const targets = new Map<string, TargetReport>();
  for (const target of reports.flatMap((report) => report.targets)) {
    const {
      inputs = 0,
      accepted = 0,
      rejected = 0,
      kept = 0,
      slowestMilliseconds = 0,
      findings = [],
    } = targets.get(target.name) ?? {};
    targets.set(target.name, {
      name: target.name,
      inputs: inputs + target.inputs,
      accepted: accepted + target.accepted,
      rejected: rejected + target.rejected,
      kept: Math.max(kept, target.kept),
      slowestMilliseconds: Math.max(slowestMilliseconds, target.slowestMilliseconds),
      findings: [...findings, ...target.findings],
    });
  }
  const stricter: FuzzReport['stricter'] = {};
  for (const [fault, count] of reports.flatMap((report) => Object.entries(report.stricter)))
    stricter[fault] = (stricter[fault] ?? 0) + count;
  const faults: FuzzReport['faults'] = {};
  for (const [name, { accepted, rejected }] of reports.flatMap((report) => Object.entries(report.faults))) {
    const before = faults[name] ?? { accepted: 0, rejected: 0 };
    faults[name] = { accepted: before.accepted + accepted, rejected: before.rejected + rejected };
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

/** The report as lines of text. */
export function describeReport({ targets, objects, stricter, faults, blocks, peakBytes }: FuzzReport): string[] {
  const lines = targets.flatMap(({ name, inputs, accepted, rejected, kept, slowestMilliseconds, findings }) => [
    `${name.padEnd(18)} ${String(inputs).padStart(9)} inputs, ${accepted} accepted, ${rejected} rejected, ${kept} kept, ` +
      `slowest ${Math.round(slowestMilliseconds)} ms, ${findings.length} findings`,
    ...findings.map((finding) => `  ${finding}`),
  ]);
  const rejectedPacks = targets.filter(({ name }) => name.startsWith('pack-')).reduce((sum, { rejected }) => sum + rejected, 0);
  const inputs = targets.reduce((sum, target) => sum + target.inputs, 0);
  lines.push(`${inputs} inputs in total; ${rejectedPacks} packs rejected`);
  for (const [name, { accepted, rejected }] of Object.entries(faults).toSorted(([one], [other]) => (one < other ? -1 : 1)))
    lines.push(`  ${name}: ${accepted} accepted, ${rejected} rejected`);
  lines.push(`${objects.count} objects compared with git fsck, ${objects.differences.length} differences`);
  lines.push(...objects.differences.slice(0, 20).map((difference) => `  ${difference}`));
  for (const [fault, count] of Object.entries(stricter)) lines.push(`rejected only by us, ${count} times: ${fault}`);
  lines.push(`${blocks} blocks reached, ${Math.round(peakBytes / 1024 / 1024)} MiB peak memory of a process`);
  return lines;
}
