import type { Command } from '#cli/command-line/command.ts';
import { login, logout, signup, whoami } from '#cli/commands/account.ts';
import { accountEmail, accountPassword } from '#cli/commands/account-changes.ts';
import { addons, addonsCreate, addonsDestroy, addonsRotate, kvCli, pgPsql } from '#cli/commands/addons.ts';
import { apps, create, destroy, info, open, restore } from '#cli/commands/apps.ts';
import { builds, buildsCache, buildsCachePurge, buildsCancel, buildsCreate, buildsLogs } from '#cli/commands/builds.ts';
import { config, configGet, configSet, configUnset } from '#cli/commands/config.ts';
import { deploy } from '#cli/commands/deploy.ts';
import { doctor } from '#cli/commands/doctor.ts';
import { domains, domainsAdd, domainsRemove } from '#cli/commands/domains.ts';
import { gitRemote, gitSource, gitSourceRemove, gitSourceSet } from '#cli/commands/git.ts';
import { helpCommand, versionCommand } from '#cli/commands/help.ts';
import { keys, keysAdd, keysRemove } from '#cli/commands/keys.ts';
import { logs } from '#cli/commands/logs.ts';
import { members, membersInvite, membersJoin, membersRemove, membersRole, teams } from '#cli/commands/members.ts';
import { metrics } from '#cli/commands/metrics.ts';
import { ps, psScale, restart } from '#cli/commands/processes.ts';
import { quotas } from '#cli/commands/quotas.ts';
import { releases, rollback } from '#cli/commands/releases.ts';
import { run } from '#cli/commands/run.ts';
import { sessions, sessionsEnd } from '#cli/commands/sessions.ts';
import { settings, settingsSet, settingsUnset } from '#cli/commands/settings.ts';
import { status } from '#cli/commands/status.ts';
import { tokens, tokensCreate, tokensRevoke } from '#cli/commands/tokens.ts';

/** Every command, in the order of `paas help`. */
export const commands: readonly Command[] = [
  signup,
  login,
  logout,
  whoami,
  accountEmail,
  accountPassword,
  sessions,
  sessionsEnd,
  tokens,
  tokensCreate,
  tokensRevoke,
  teams,
  members,
  membersInvite,
  membersJoin,
  membersRole,
  membersRemove,
  quotas,
  keys,
  keysAdd,
  keysRemove,
  create,
  apps,
  info,
  open,
  destroy,
  restore,
  gitRemote,
  gitSource,
  gitSourceSet,
  gitSourceRemove,
  config,
  configSet,
  configGet,
  configUnset,
  settings,
  settingsSet,
  settingsUnset,
  domains,
  domainsAdd,
  domainsRemove,
  ps,
  psScale,
  restart,
  run,
  metrics,
  addons,
  addonsCreate,
  addonsRotate,
  addonsDestroy,
  pgPsql,
  kvCli,
  logs,
  releases,
  rollback,
  deploy,
  builds,
  buildsCreate,
  buildsLogs,
  buildsCancel,
  buildsCache,
  buildsCachePurge,
  status,
  doctor,
  helpCommand(() => commands),
  versionCommand,
];
