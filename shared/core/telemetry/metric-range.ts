import { secondsPerDay, secondsPerHour, secondsPerMinute } from '#shared/durations.ts';

/** How far apart the points of a range are, and which samples they are computed from. */
export interface MetricResolution {
  stepSeconds: number;
  /** Length of the samples, one of `sampleLengths`. */
  sampleSeconds: number;
}

const shortestRangeSeconds = secondsPerMinute;
const longestRangeSeconds = 30 * secondsPerDay;

/** The lengths of samples, and how long each is stored: a little longer than the ranges that are computed from it. */
export const sampleLengths = [
  { stepSeconds: 10, retainedSeconds: 2 * secondsPerHour },
  { stepSeconds: secondsPerMinute, retainedSeconds: secondsPerDay },
  { stepSeconds: 5 * secondsPerMinute, retainedSeconds: longestRangeSeconds + secondsPerDay },
] as const;

/** A range has at most 360 points. */
const resolutions: readonly (MetricResolution & { upToSeconds: number })[] = [
  { upToSeconds: secondsPerHour, stepSeconds: 10, sampleSeconds: 10 },
  { upToSeconds: 6 * secondsPerHour, stepSeconds: secondsPerMinute, sampleSeconds: secondsPerMinute },
  { upToSeconds: secondsPerDay, stepSeconds: 5 * secondsPerMinute, sampleSeconds: 5 * secondsPerMinute },
  { upToSeconds: 7 * secondsPerDay, stepSeconds: 30 * secondsPerMinute, sampleSeconds: 5 * secondsPerMinute },
];

/** The resolution of a range of this length. */
export function resolutionOf(rangeSeconds: number): MetricResolution {
  return (
    resolutions.find(({ upToSeconds }) => rangeSeconds <= upToSeconds) ?? {
      stepSeconds: 2 * secondsPerHour,
      sampleSeconds: 5 * secondsPerMinute,
    }
  );
}

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: secondsPerMinute, h: secondsPerHour, d: secondsPerDay };

/** Seconds of '90s', '15m', '6h' or '30d'; undefined for other texts, and below a minute or above 30 days. */
export function parseRange(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,7})([smhd])$/.exec(text) ?? [];
  const seconds = Number(count) * (unitSeconds[unit ?? ''] ?? 0);
  return seconds >= shortestRangeSeconds && seconds <= longestRangeSeconds ? seconds : undefined;
}
