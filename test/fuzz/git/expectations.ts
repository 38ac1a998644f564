export function words(...texts: readonly string[]): Buffer[] {
  return texts.map((text) => Buffer.from(text, 'latin1'));
}

/** @throws Error, which is a finding */
export function hold(condition: boolean, what: string): void {
  if (!condition) throw new Error(`does not hold: ${what}`);
}
