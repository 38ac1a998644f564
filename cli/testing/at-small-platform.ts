import { afterEach, beforeEach } from 'vitest';
import { type CommandResult, createPerson, type Person } from '#cli/testing/person.ts';
import { type SmallPlatform, smallPlatformPassword, startSmallPlatform } from '#cli/testing/small-platform.ts';

export interface AtSmallPlatform {
  platform: SmallPlatform;
  person: Person;
  logIn(): Promise<CommandResult>;
}

/** For each test of the file or group: a platform, and somebody whose `paas` talks to it. */
export function atSmallPlatform(): AtSmallPlatform {
  const at = {} as AtSmallPlatform;
  beforeEach(async () => {
    at.platform = await startSmallPlatform();
    at.person = await createPerson({ PAAS_API_URL: at.platform.host });
    at.logIn = () =>
      at.person.paas(['login', '-e', 'ada@example.com', '--password-stdin'], { input: `${smallPlatformPassword}\n` });
  });
  afterEach(async () => {
    await at.person.remove();
    await at.platform.close();
  });
  return at;
}
