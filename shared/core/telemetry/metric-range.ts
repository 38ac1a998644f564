/** How far apart the points of a range lie, and of which kept samples they are made. */
export interface MetricResolution {
  stepSeconds: number;
  /** One of `keptSteps`. */
  sampleSeconds: number;
}

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

const shortestRangeSeconds = minute;
const longestRangeSeconds = 30 * day;

/** How long samples of each length are kept: a little longer than the ranges that are made of them. */
export const keptSteps = [
  { stepSeconds: 10, keptSeconds: 2 * hour },
  { stepSeconds: minute, keptSeconds: day },
  { stepSeconds: 5 * minute, keptSeconds: longestRangeSeconds + day },
] as const;

/** A range has 360 points at the most. */
const resolutions: readonly (MetricResolution & { upToSeconds: number })[] = [
  { upToSeconds: hour, stepSeconds: 10, sampleSeconds: 10 },
  { upToSeconds: 6 * hour, stepSeconds: minute, sampleSeconds: minute },
  { upToSeconds: day, stepSeconds: 5 * minute, sampleSeconds: 5 * minute },
  { upToSeconds: 7 * day, stepSeconds: 30 * minute, sampleSeconds: 5 * minute },
];

export function resolutionOf(rangeSeconds: number): MetricResolution {
  return (
    resolutions.find(({ upToSeconds }) => rangeSeconds <= upToSeconds) ?? { stepSeconds: 2 * hour, sampleSeconds: 5 * minute }
  );
}

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: minute, h: hour, d: day };

/** '90s', '15m', '6h', '30d' in seconds; undefined for what is none, or not between a minute and 30 days. */
export function parseRange(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,7})([smhd])$/.exec(text) ?? [];
  const seconds = Number(count) * (unitSeconds[unit ?? ''] ?? 0);
  return seconds >= shortestRangeSeconds && seconds <= longestRangeSeconds ? seconds : undefined;
}
