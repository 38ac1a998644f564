import { describe, expect, it } from 'vitest';
import { fitsRust, toRustChannel } from './rust-versions.ts';

describe('a request for Rust', () => {
  it.each([
    ['1.88.0', '1.88.0'],
    ['1.88', '1.88'],
    ['>=1.90', 'stable'],
    ['stable-x86_64-unknown-linux-gnu', 'stable'],
    ['nightly-2026-01-02', 'nightly-2026-01-02'],
    ['nightly-2026-01-02-x86_64-unknown-linux-gnu', 'nightly-2026-01-02'],
    ['../../etc', 'stable'],
  ])('%s looks the channel %s up', (request, channel) => {
    expect(toRustChannel(request)).toBe(channel);
  });

  it.each([
    ['1.88.0', '1.88', true],
    ['1.95.0', '1.88', false],
    ['1.95.0', '>=1.56', true],
    ['1.95.0', 'stable', true],
    ['1.97.0-nightly', 'stable', false],
    ['1.97.0-nightly', 'nightly', true],
    ['nightly-2026-01-02', 'nightly', true],
    ['1.97.0-nightly', 'nightly-2026-01-02', false],
    ['nightly-2026-01-02', 'nightly-2026-01-02', true],
    ['nightly-2026-01-02', '1.88', false],
  ])('is answered by %s for %s: %s', (version, request, fits) => {
    expect(fitsRust(version, request)).toBe(fits);
  });
});
