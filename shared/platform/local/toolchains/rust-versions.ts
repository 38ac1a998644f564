import { satisfies } from 'semver';
import { toRange } from './versions.ts';

const withDate = /^(?:nightly|beta)-\d{4}-\d\d-\d\d/;
const triple = /-(?:x86_64|aarch64)-unknown-linux-(?:gnu|musl)$/;

/** The channel of Rust's distribution server that a request names: '1.88.0', '1.88', 'nightly-2026-01-01'; 'stable' for a range. */
export function toRustChannel(request: string): string {
  const text = request.trim().replace(triple, '');
  const dated = withDate.exec(text)?.[0];
  if (dated !== undefined) return dated;
  const channel = /^(?:stable|beta|nightly|\d+\.\d+(?:\.\d+)?)$/.exec(text)?.[0];
  return channel ?? 'stable';
}

/**
 * Whether a compiler is what was asked for.
 * @param version of a compiler: '1.88.0', '1.97.0-nightly', or of the tool store: 'nightly-2026-01-01'
 * @param request '1.88', '>=1.56', 'stable', 'nightly', 'nightly-2026-01-01'. One with a date is only that of the date
 */
export function fitsRust(version: string, request: string): boolean {
  const text = request.trim().replace(triple, '');
  if (withDate.test(text)) return version === withDate.exec(text)?.[0];
  const channel = /^(stable|latest|beta|nightly)$/.exec(text)?.[1];
  if (channel === 'beta' || channel === 'nightly') return version.includes(`-${channel}`) || version.startsWith(`${channel}-`);
  if (channel !== undefined) return /^[\d.]+$/.test(version);
  const range = toRange(text);
  return range !== undefined && /^\d/.test(version) && satisfies(version, range);
}
