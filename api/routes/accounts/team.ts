import { createRoute, z } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import {
  answer,
  bearer,
  dataOf,
  guarded,
  idempotencyHeader,
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
const memberParams = idParam('member', 'Id of the membership, from the list of members.');

const listTenants = createRoute({
  method: 'get',
  path: '/v1/tenants',
  operationId: 'listTenants',
  summary: 'List your tenants, newest membership first',
  tags,
  security: bearer,
  request: { query: pageQuery },
  responses: { 200: answer(pageOf(JoinedTenantSchema), 'A page of tenants.'), ...guarded, ...refusalsOf(422) },
});

const listMembers = createRoute({
  method: 'get',
  path: '/v1/tenant/members',
  operationId: 'listMembers',
  summary: 'List the members of the tenant, newest first',
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
  description: 'Requires the role admin or owner. Nobody can give a role above their own. A tenant always has an owner.',
  tags,
  security: bearer,
  request: { params: memberParams, body: jsonBody(z.object({ role: roleSchema }), true) },
  responses: { 200: answer(dataOf(MemberSchema), 'Changed.'), ...guarded, ...withBody, ...refusalsOf(404, 409) },
});

const removeMember = createRoute({
  method: 'delete',
  path: '/v1/tenant/members/{member}',
  operationId: 'removeMember',
  summary: 'Remove a member or leave a tenant',
  description: 'SSH keys and tokens of the member stop working in this tenant at once. A tenant always has an owner.',
  tags,
  security: bearer,
  request: { params: memberParams },
  responses: { 204: { description: 'Removed.' }, ...guarded, ...refusalsOf(404, 409) },
});

const invite = createRoute({
  method: 'post',
  path: '/v1/tenant/invitations',
  operationId: 'invite',
  summary: 'Invite somebody to the tenant',
  description: 'The platform sends no mail: pass the `token` on yourself. It replaces an earlier invitation of the same address.',
  tags,
  security: bearer,
  request: {
    headers: idempotencyHeader,
    body: jsonBody(z.object({ email: lineOf(320).openapi({ example: 'bob@example.com' }), role: roleSchema }), true),
  },
  responses: {
    201: answer(dataOf(NewInvitationSchema), 'Invited. The invitation expires after 7 days.'),
    ...guarded,
    ...withBody,
    ...refusalsOf(409),
  },
});

const listInvitations = createRoute({
  method: 'get',
  path: '/v1/tenant/invitations',
  operationId: 'listInvitations',
  summary: 'List open invitations, newest first',
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
  responses: { 204: { description: 'Withdrawn. Its token is refused from now on.' }, ...guarded, ...refusalsOf(404) },
});

const accept = createRoute({
  method: 'post',
  path: '/v1/invitations/accept',
  operationId: 'acceptInvitation',
  summary: 'Accept an invitation',
  description: 'Joins the tenant of the invitation. Your email address must be the invited one.',
  tags,
  security: bearer,
  request: { body: jsonBody(z.object({ token: z.string().min(1).max(200) }), true) },
  responses: { 200: answer(dataOf(JoinedTenantSchema), 'Joined.'), ...guarded, ...withBody, ...refusalsOf(404, 409) },
});

/** Adds the routes of tenants, members and invitations. */
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
