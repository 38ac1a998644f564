export interface BuildOutput {
  /** '-----> step' */
  step(text: string): void;
  /** '       detail' */
  detail(text: string): void;
  /** A line that a tool has printed. */
  tool(line: string): void;
  /** The last lines that tools wrote, oldest first. */
  tail(): readonly string[];
}

// npm ends a refusal with its whole manual page; what matters comes before that.
const tailLines = 200;

/** @param limits `logBytes` for the whole build, after which tools are no longer listened to */
export function createBuildOutput(line: (text: string) => void, limits: { logBytes: number; logLineBytes: number }): BuildOutput {
  const last: string[] = [];
  let left = limits.logBytes;
  const say = (text: string): void => line(cut(text.replaceAll('\n', ' ').replaceAll(controls, ''), limits.logLineBytes));
  const hear = (raw: string): void => {
    const text = tameLine(raw);
    last.push(text);
    if (last.length > tailLines) last.shift();
    if (left <= 0) return;
    left -= text.length + 8;
    say(text === '' ? '' : `       ${text}`);
    if (left <= 0) line(`       … more output than ${Math.round(limits.logBytes / 1024 / 1024)} MiB: the rest is left out`);
  };
  return {
    step: (text) => say(`-----> ${text}`),
    detail: (text) => say(`       ${text}`),
    tool: hear,
    tail: () => [...last],
  };
}

// CSI and OSC sequences, then two-character escapes.
const escapes = /\x1b\[[0-9:;<=>?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]/g;
/** Names of files may contain them, too. */
const controls = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/** What a terminal would show in the end: no colours and cursor movements, of a line redrawn by carriage returns the last state. */
export function tameLine(raw: string): string {
  const redrawn = raw
    .replaceAll(escapes, '')
    .split('\r')
    .filter((part) => part.trim() !== '');
  return (redrawn.at(-1) ?? '').replaceAll(controls, '').trimEnd();
}

function cut(text: string, longestBytes: number): string {
  if (text.length * 3 <= longestBytes) return text;
  const bytes = new TextEncoder().encode(text);
  return bytes.length <= longestBytes
    ? text
    : `${new TextDecoder().decode(bytes.subarray(0, longestBytes - 8)).replace(/\uFFFD+$/, '')} …`;
}
