import { fileURLToPath } from 'node:url';
import { createAddresses } from '#shared/core/addresses.ts';
import type { Settings } from '#shared/settings/settings.ts';

export interface StartFacts {
  /** Undefined when builds and apps are confined; else why not, and what mends it. */
  sandboxProblem: string | undefined;
  /** Apps that ran before and are brought back. */
  resumedApps: number;
}

const launcher = fileURLToPath(new URL('../cli/paas', import.meta.url));

/** What the operator reads when everything runs: where things are, and what to type next. */
export function describeStart(settings: Settings, dataDir: string, facts: StartFacts, seconds: number): string[] {
  const addresses = createAddresses(settings);
  const signUp = settings.signup === 'closed' ? ['  (sign-up is closed: PAAS_SIGNUP=open opens it)'] : [`  ${launcher} signup`];
  return [
    `paas is ready (${seconds.toFixed(1)} s)`,
    '',
    `  API    ${settings.baseUrl}/v1 (described in ${settings.baseUrl}/v1/openapi.json)`,
    `  Git    ${addresses.pushUrl('<app>')}`,
    `  Apps   ${addresses.webUrl('<app>')}`,
    `  TLS    ${addresses.subdomain('<app>')} (its certificate authority: ${dataDir}/gateway/ca.pem)`,
    `  Data   ${dataDir}`,
    `  Sign-up: ${describeSignUp(settings)}`,
    ...(facts.resumedApps > 0 ? [`  Apps brought back: ${facts.resumedApps}`] : []),
    ...(facts.sandboxProblem === undefined
      ? []
      : ['', ` !     No sandbox: only the first user may sign up and build. ${facts.sandboxProblem}`]),
    '',
    'Put an app of yours live, in its git repository:',
    '',
    ...signUp,
    `  ${launcher} keys:add`,
    `  ${launcher} create hello`,
    '  git push paas main',
    '',
    'Ctrl-C stops it all.',
  ];
}

/** Who can create an account, and from where. */
function describeSignUp({ signup, host }: Settings): string {
  const isLocal = host === 'localhost' || host === '::1' || host.startsWith('127.');
  const from = isLocal ? 'from this machine only' : `from every network that reaches this machine (PAAS_HOST=${host})`;
  switch (signup) {
    case 'open':
      return `open to everybody, ${from}. To change that: PAAS_SIGNUP=invitation or closed`;
    case 'invitation':
      return `by invitation to a team, ${from} (PAAS_SIGNUP=invitation)`;
    case 'closed':
      return 'closed to everybody (PAAS_SIGNUP=closed)';
  }
}
