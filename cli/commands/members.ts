import { defineCommand } from '#cli/command-line/command.ts';
import { CliError, exitCodes, usageError } from '#cli/errors/cli-error.ts';
import { relativeTime } from '#cli/output/relative-time.ts';
import { oneLine } from '#cli/output/sanitize.ts';
import { table } from '#cli/output/table.ts';
import { type Api, answerOf, succeeded } from '#shared/api-client/client.ts';
import { eachItem, firstItems } from '#shared/api-client/pages.ts';

const roles = ['owner', 'admin', 'developer', 'viewer'] as const;
const memberArgument = { kind: 'required', summary: 'email address, from `paas members`' } as const;

function parseRole(text: string) {
  const role = roles.find((each) => each === text);
  if (role === undefined) throw usageError('Unknown role.', `Roles are ${roles.join(', ')}.`);
  return role;
}

function listMembers(api: Api) {
  return firstItems(eachItem((query) => answerOf(api.GET('/v1/tenant/members', { params: { query } }))));
}

async function findMember(api: Api, email: string) {
  const member = (await listMembers(api)).find((each) => each.email.toLowerCase() === email.toLowerCase());
  if (member !== undefined) return member;
  throw new CliError('Your team has no such member.', { exitCode: exitCodes.notFound, hint: 'List them with `paas members`.' });
}

export const teams = defineCommand({
  name: 'teams',
  group: 'Team',
  summary: 'list your teams',
  details: ['Commands act in the team that you joined first. To act in another one, set PAAS_TENANT to its id.'],
  args: {},
  flags: {},
  async run(context) {
    const api = await context.api();
    const found = await firstItems(eachItem((query) => answerOf(api.GET('/v1/tenants', { params: { query } }))));
    context.print(table(found.map(({ id, name, role }) => [id, oneLine(name), role])), found);
  },
});

export const members = defineCommand({
  name: 'members',
  aliases: ['members:list', 'access'],
  group: 'Team',
  summary: 'list the members of your team',
  args: {},
  flags: {},
  async run(context) {
    const found = await listMembers(await context.api());
    const rows = found.map((each) => [oneLine(each.email), each.role, `since ${relativeTime(each.created_at, context.now())}`]);
    context.print(table(rows), found);
  },
});

export const membersInvite = defineCommand({
  name: 'members:invite',
  group: 'Team',
  summary: 'invite somebody to your team',
  details: ['The platform sends no mail: pass the printed invitation on. It works once, for this address, for 7 days.'],
  args: { email: { kind: 'required', summary: 'email address of the person' } },
  flags: { role: { kind: 'string', value: 'ROLE', summary: 'role: owner, admin, developer or viewer (default: developer)' } },
  examples: ['paas members:invite bob@example.com', 'paas members:invite bob@example.com --role viewer'],
  async run(context, { args, flags }) {
    const body = { email: args.email, role: parseRole(flags.role ?? 'developer') };
    const { data } = await answerOf((await context.api()).POST('/v1/tenant/invitations', { body }));
    context.report(
      `Give this invitation to ${oneLine(data.email)}. To join: \`paas members:join INVITATION\`. With a new account: \`paas signup --invitation INVITATION\`.`,
    );
    context.print(`${data.token}\n`, data);
  },
});

export const membersJoin = defineCommand({
  name: 'members:join',
  group: 'Team',
  summary: 'join a team with an invitation',
  args: { invitation: { kind: 'required', summary: 'the invitation that `paas members:invite` printed' } },
  flags: {},
  async run(context, { args }) {
    const body = { token: args.invitation };
    const { data } = await answerOf((await context.api()).POST('/v1/invitations/accept', { body }));
    context.report(`You are now ${data.role} of ${oneLine(data.name)}. To act in this team: export PAAS_TENANT=${data.id}`);
    context.print('', data);
  },
});

export const membersRole = defineCommand({
  name: 'members:role',
  group: 'Team',
  summary: 'change the role of a member',
  args: { email: memberArgument, role: { kind: 'required', summary: 'owner, admin, developer or viewer' } },
  flags: {},
  async run(context, { args }) {
    const role = parseRole(args.role);
    const api = await context.api();
    const { id } = await findMember(api, args.email);
    const path = { member: id };
    const { data } = await context.showProgress(
      `Changing the role of ${oneLine(args.email)} to ${role}`,
      answerOf(api.PATCH('/v1/tenant/members/{member}', { params: { path }, body: { role } })),
    );
    context.print('', data);
  },
});

export const membersRemove = defineCommand({
  name: 'members:remove',
  group: 'Team',
  summary: 'remove a member, or leave the team',
  args: { email: memberArgument },
  flags: {},
  async run(context, { args }) {
    const api = await context.api();
    const member = await findMember(api, args.email);
    await context.showProgress(
      `Removing ${oneLine(member.email)}`,
      succeeded(api.DELETE('/v1/tenant/members/{member}', { params: { path: { member: member.id } } })),
    );
    context.print('', member);
  },
});
