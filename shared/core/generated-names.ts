const adjectives = [
  'amber', 'ancient', 'autumn', 'bold', 'brave', 'bright', 'calm', 'clear', 'cosmic', 'crimson', 'dawn', 'deep', 'early', 'fair',
  'gentle', 'golden', 'green', 'hidden', 'icy', 'jolly', 'kind', 'lively', 'lunar', 'mellow', 'misty', 'noble', 'northern', 'polar',
  'quick', 'quiet', 'rapid', 'rustic', 'silent', 'silver', 'snowy', 'solar', 'still', 'summer', 'swift', 'tidy', 'vivid', 'warm', 'wild',
];
const nouns = [
  'bay', 'beacon', 'birch', 'breeze', 'brook', 'canyon', 'cedar', 'cliff', 'cloud', 'comet', 'coral', 'creek', 'delta', 'dune', 'ember',
  'falcon', 'fern', 'field', 'fjord', 'forest', 'garden', 'glade', 'harbor', 'heron', 'island', 'lagoon', 'lake', 'maple', 'meadow',
  'mesa', 'moon', 'orchard', 'otter', 'pine', 'prairie', 'reef', 'ridge', 'river', 'shore', 'spring', 'summit', 'thicket', 'valley', 'willow',
];

function pick(words: readonly string[]): string {
  return words[(crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) % words.length] ?? 'app';
}

/** As `quiet-harbor-48213`: a free app name with near certainty, and one that can be said aloud. */
export function generateAppName(): string {
  const digits = 10_000 + ((crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) % 90_000);
  return `${pick(adjectives)}-${pick(nouns)}-${digits}`;
}
