/** A number with its noun: `1 request`, `3 requests`. @param noun in the singular, with a regular plural */
export function counted(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
