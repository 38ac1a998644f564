import { afterEach, beforeEach } from 'vitest';
import { type CommandOptions, type CommandResult, createPerson, type Person } from '#cli/testing/person.ts';
import { runInProcess } from '#cli/testing/run-in-process.ts';
import { type SmallPlatform, smallPlatformPassword, startSmallPlatform } from '#cli/testing/small-platform.ts';

/** The fixture of `atSmallPlatform`. */
export interface AtSmallPlatform {
  platform: SmallPlatform;
  person: Person;
  /** Runs a command line of the person in the process of the test. */
  paas(args: readonly string[], options?: CommandOptions): Promise<CommandResult>;
  logIn(): Promise<CommandResult>;
}

/** Starts a small platform before each test of the file or group, with a person who uses it. */
export function atSmallPlatform(): AtSmallPlatform {
  const at = {} as AtSmallPlatform;
  beforeEach(async () => {
    at.platform = await startSmallPlatform();
    at.person = await createPerson({ PAAS_API_URL: at.platform.host });
    at.paas = (args, { cwd = at.person.home, env, input = '' } = {}) =>
      runInProcess(args, { cwd, env: { ...at.person.env, ...env }, input });
    at.logIn = () => at.paas(['login', '-e', 'ada@example.com', '--password-stdin'], { input: `${smallPlatformPassword}\n` });
  });
  afterEach(async () => {
    await at.person.remove();
    await at.platform.close();
  });
  return at;
}
