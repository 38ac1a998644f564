import { createRoute, z } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import {
  answer,
  bearer,
  dataOf,
  guarded,
  idParam,
  jsonBody,
  lineOf,
  pageOf,
  pageQuery,
  presentPage,
  refusalsOf,
  toPageQuery,
  withBody,
} from '#api/openapi/schemas.ts';
import { roleSchema } from '#api/resources/account.ts';
import {
  InvitationSchema,
  JoinedTenantSchema,
  MemberSchema,
  NewInvitationSchema,
  presentInvitation,
  presentMember,
} from '#api/resources/team.ts';
import type { Team } from '#shared/core/accounts/accounts.ts';

const tags = ['team'];
const memberParams = idParam('member', 'Id of the membership, as the list of members has it.');

const listTenants = createRoute({
  method: 'get',
  path: '/v1/tenants',
  operationId: 'listTenants',
  summary: 'The tenants you belong to, newest membership first',
  tags,
  security: bearer,
  request: { query: pageQuery },
  responses: { 200: answer(pageOf(JoinedTenantSchema), 'A page of tenants.'), ...guarded, ...refusalsOf(422) },
});

const listMembers = createRoute({
  method: 'get',
  path: '/v1/tenant/members',
  operationId: 'listMembers',
  summary: 'Members of the tenant you act in, newest first',
  tags,
  security: bearer,
  request: { query: pageQuery },
  responses: { 200: answer(pageOf(MemberSchema), 'A page of members.'), ...guarded, ...refusalsOf(422) },
});

const changeRole = createRoute({
  method: 'patch',
  path: '/v1/tenant/members/{member}',
  operationId: 'changeRole',
  summary: 'Change the role of a member',
  description: 'Needs an admin or owner, and no role above their own. A tenant keeps an owner.',
  tags,
  security: bearer,
  request: { params: memberParams, body: jsonBody(z.object({ role: roleSchema }), true) },
  responses: { 200: answer(dataOf(MemberSchema), 'Changed.'), ...guarded, ...withBody, ...refusalsOf(404, 409) },
});

const removeMember = createRoute({
  method: 'delete',
  path: '/v1/tenant/members/{member}',
  operationId: 'removeMember',
  summary: 'Remove a member, or leave',
  description: 'Their keys and tokens stop working in this tenant at once. A tenant keeps an owner.',
  tags,
  security: bearer,
  request: { params: memberParams },
  responses: { 204: { description: 'Removed.' }, ...guarded, ...refusalsOf(404, 409) },
});

const invite = createRoute({
  method: 'post',
  path: '/v1/tenant/invitations',
  operationId: 'invite',
  summary: 'Invite somebody to the tenant you act in',
  description: 'There is no mail: hand the `token` on yourself. An earlier invitation of the same address ends.',
  tags,
  security: bearer,
  request: {
    body: jsonBody(z.object({ email: lineOf(320).openapi({ example: 'bob@example.com' }), role: roleSchema }), true),
  },
  responses: { 201: answer(dataOf(NewInvitationSchema), 'Invited, for 7 days.'), ...guarded, ...withBody },
});

const listInvitations = createRoute({
  method: 'get',
  path: '/v1/tenant/invitations',
  operationId: 'listInvitations',
  summary: 'Open invitations, newest first',
  tags,
  security: bearer,
  request: { query: pageQuery },
  responses: { 200: answer(pageOf(InvitationSchema), 'A page of invitations.'), ...guarded, ...refusalsOf(422) },
});

const withdraw = createRoute({
  method: 'delete',
  path: '/v1/tenant/invitations/{invitation}',
  operationId: 'withdrawInvitation',
  summary: 'Withdraw an invitation',
  tags,
  security: bearer,
  request: { params: idParam('invitation', 'Id of the invitation.') },
  responses: { 204: { description: 'Withdrawn: its token is refused from now on.' }, ...guarded, ...refusalsOf(404) },
});

const accept = createRoute({
  method: 'post',
  path: '/v1/invitations/accept',
  operationId: 'acceptInvitation',
  summary: 'Join the tenant of an invitation',
  description: 'By whom it was made for: the email address must be the one invited.',
  tags,
  security: bearer,
  request: { body: jsonBody(z.object({ token: z.string().min(1).max(200) }), true) },
  responses: { 200: answer(dataOf(JoinedTenantSchema), 'Joined.'), ...guarded, ...withBody, ...refusalsOf(404, 409) },
});

export function addTeamRoutes(api: Api, team: Team): void {
  api.openapi(listTenants, async (c) => {
    const page = await team.listTenants(c.get('caller'), toPageQuery(c.req.valid('query')));
    return c.json(
      presentPage(page, ({ id, name, role }) => ({ id, name, role })),
      200,
    );
  });

  api.openapi(listMembers, async (c) => {
    const page = await team.listMembers(c.get('caller'), toPageQuery(c.req.valid('query')));
    return c.json(presentPage(page, presentMember), 200);
  });

  api.openapi(changeRole, async (c) => {
    const member = await team.changeRole(c.get('caller'), c.req.valid('param').member, c.req.valid('json').role);
    return c.json({ data: presentMember(member) }, 200);
  });

  api.openapi(removeMember, async (c) => {
    await team.removeMember(c.get('caller'), c.req.valid('param').member);
    return c.body(null, 204);
  });

  api.openapi(invite, async (c) => {
    const made = await team.invite(c.get('caller'), c.req.valid('json'));
    return c.json({ data: { ...presentInvitation(made), token: made.token } }, 201);
  });

  api.openapi(listInvitations, async (c) => {
    const page = await team.listInvitations(c.get('caller'), toPageQuery(c.req.valid('query')));
    return c.json(presentPage(page, presentInvitation), 200);
  });

  api.openapi(withdraw, async (c) => {
    await team.withdrawInvitation(c.get('caller'), c.req.valid('param').invitation);
    return c.body(null, 204);
  });

  api.openapi(accept, async (c) => {
    const { id, name, role } = await team.acceptInvitation(c.get('caller'), c.req.valid('json').token);
    return c.json({ data: { id, name, role } }, 200);
  });
}
