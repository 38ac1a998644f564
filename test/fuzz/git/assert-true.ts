/** The texts as bytes, one byte for each character. */
export function words(...texts: readonly string[]): Buffer[] {
  return texts.map((text) => Buffer.from(text, 'latin1'));
}

/** @throws Error, which is a finding, when `what` is not true */
export function assertTrue(condition: boolean, what: string): void {
  if (!condition) throw new Error(`not true: ${what}`);
}
