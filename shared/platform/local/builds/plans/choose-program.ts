const serverName = /(?:^|[-_])(?:web|server|api|app|http)d?$/;

/**
 * Of several programs that a build left, the one that is meant to be the app.
 * @param names of the app itself, the first one that is there wins
 * @returns undefined if that is not clear
 */
export function chooseProgram(programs: readonly string[], names: readonly (string | undefined)[]): string | undefined {
  if (programs.length === 1) return programs[0];
  const named = [...names, 'web', 'server', 'api', 'app', 'main'].find((name) => name !== undefined && programs.includes(name));
  if (named !== undefined) return named;
  const servers = programs.filter((name) => serverName.test(name));
  return servers.length === 1 ? servers[0] : undefined;
}
