/** The operator's log: one line per event. Callers must never pass secrets, tokens or values of config variables. */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

/** `error` may be any thrown value; its stack appears only in the operator's log. */
export type LogFields = Record<string, unknown>;

/** From most to least; `silent` logs nothing. */
export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/** Writes JSON lines. A field named `error` becomes its message and stack. @param write writes one line */
export function createLog(level: LogLevel, write: (line: string) => void, now: () => Date = () => new Date()): Log {
  const threshold = logLevels.indexOf(level);
  const emit = (at: LogLevel, message: string, fields: LogFields = {}): void => {
    if (logLevels.indexOf(at) < threshold) return;
    const { error, ...rest } = fields;
    const unfolded = error instanceof Error ? { error: error.message, stack: error.stack } : error === undefined ? {} : { error };
    write(JSON.stringify({ ts: now().toISOString(), level: at, message, ...rest, ...unfolded }));
  };
  return {
    debug: (message, fields) => emit('debug', message, fields),
    info: (message, fields) => emit('info', message, fields),
    warn: (message, fields) => emit('warn', message, fields),
    error: (message, fields) => emit('error', message, fields),
  };
}
