import { beforeEach, describe, expect, it } from 'vitest';
import { atSmallPlatform } from '#cli/testing/at-small-platform.ts';

const at = atSmallPlatform();

describe('settings', () => {
  beforeEach(async () => {
    await at.logIn();
    await at.paas(['create', 'hello']);
  });

  it('are set, shown with what is the default, and reset', async () => {
    const set = await at.paas(['settings:set', '-a', 'hello', 'health-path=/up?a=b', 'boot-timeout=120', 'session-affinity=off']);
    expect([set.code, at.platform.settings]).toEqual([
      0,
      {
        health_path: '/up?a=b',
        health_timeout_seconds: null,
        boot_timeout_seconds: 120,
        session_affinity: false,
        directory: null,
        client_variables: null,
      },
    ]);
    const { stdout } = await at.paas(['settings', '-a', 'hello']);
    expect(stdout).toMatch(
      /^health-path: +\/up\?a=b\nhealth-timeout: +5 s \(default\)\nboot-timeout: +120 s\nsession-affinity: +off\ndirectory: +all of the source \(default\)\nclient-variables: +off \(default\)\n$/,
    );
    await at.paas(['settings:unset', '-a', 'hello', 'health-path', 'session-affinity']);
    expect(at.platform.settings).toMatchObject({ health_path: null, boot_timeout_seconds: 120, session_affinity: null });
  });

  it.each([
    [['settings:set', 'helth-path=/up'], /no setting "helth-path".*\n.*health-path, health-timeout/],
    [['settings:set', 'health-path'], /does not have the form NAME=value/],
    [['settings:set', 'boot-timeout=1m'], /whole number of seconds/],
    [['settings:set', 'session-affinity=maybe'], /on or off/],
    [['settings:unset', 'toString'], /no setting "toString"/],
  ])('refuse %j', async (args, message) => {
    const { code, stderr } = await at.paas([...args, '-a', 'hello']);
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
  });
});
