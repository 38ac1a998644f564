/** '2 seconds', '1 minute', '15 minutes'. */
export function describeDuration(seconds: number): string {
  const [count, unit] = seconds % 60 === 0 ? [seconds / 60, 'minute'] : [seconds, 'second'];
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
