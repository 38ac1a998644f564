import { createRoute, z } from '@hono/zod-openapi';
import type { Api, ApiContext } from '#api/http/api-env.ts';
import {
  answer,
  bearer,
  dataOf,
  guarded,
  idempotencyHeader,
  jsonBody,
  lineOf,
  refusalsOf,
  withBody,
} from '#api/openapi/schemas.ts';
import { presentTokens, presentUser, SignupSchema, TokensSchema, UserSchema } from '#api/resources/account.ts';
import { signUpId } from '#api/routes/accounts/sign-up-id.ts';
import type { Accounts } from '#shared/core/accounts/accounts.ts';
import type { Identity, LoginOrigin } from '#shared/identity/identity.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';
import { sourceKey } from '#shared/rate-limits/source-key.ts';

const tags = ['accounts'];
/** Identity checks what an email and a password may be. Here only their length is limited. */
const credentials = { email: lineOf(320), password: z.string().max(1000) };
/** Characters of a `User-Agent` that are stored. */
const longestClient = 200;
const refreshBody = z.object({ refresh_token: z.string().min(1).max(200) });

const signUpBody = z.object({
  ...credentials,
  tenant_name: lineOf(100).min(1).optional(),
  invitation_token: z.string().min(1).max(200).optional().openapi({
    description: 'Join the tenant of this invitation instead of creating one. Required when signup is by invitation.',
  }),
});

const signUp = createRoute({
  method: 'post',
  path: '/v1/signup',
  operationId: 'signUp',
  summary: 'Sign up',
  description:
    'Creates a user and a tenant, and returns tokens. With an invitation the user joins its tenant instead. A repeated request ' +
    'with the same Idempotency-Key gets the same user and tenant with new tokens.',
  tags,
  security: [],
  request: { headers: idempotencyHeader, body: jsonBody(signUpBody, true) },
  responses: { 201: answer(dataOf(SignupSchema), 'Signed up.'), ...withBody, ...refusalsOf(403, 404, 409, 429, 500, 503) },
});

const logIn = createRoute({
  method: 'post',
  path: '/v1/auth/login',
  operationId: 'logIn',
  summary: 'Log in with email and password',
  description:
    'An email address has ten failed attempts in 15 minutes, whether it is registered or not. Each IP address that the user has logged in from has ten more.',
  tags,
  security: [],
  request: { body: jsonBody(z.object(credentials), true) },
  responses: { 200: answer(dataOf(TokensSchema), 'Logged in.'), ...withBody, ...refusalsOf(401, 403, 429, 500, 503) },
});

const refresh = createRoute({
  method: 'post',
  path: '/v1/auth/refresh',
  operationId: 'refreshTokens',
  summary: 'Refresh tokens',
  description:
    'Exchanges a refresh token for new tokens. A refresh token works once. Using it again ends all sessions that came from it.',
  tags,
  security: [],
  request: { body: jsonBody(refreshBody, true) },
  responses: { 200: answer(dataOf(TokensSchema), 'New tokens.'), ...withBody, ...refusalsOf(401, 403, 429, 500, 503) },
});

const logOut = createRoute({
  method: 'post',
  path: '/v1/auth/logout',
  operationId: 'logOut',
  summary: 'Log out',
  description: 'Ends the session of a refresh token, and its access tokens.',
  tags,
  security: [],
  request: { body: jsonBody(refreshBody, true) },
  responses: { 204: { description: 'Logged out, or there was no such session.' }, ...withBody, ...refusalsOf(429, 500, 503) },
});

const readUser = createRoute({
  method: 'get',
  path: '/v1/user',
  operationId: 'readUser',
  summary: 'Get the current user',
  tags,
  security: bearer,
  responses: { 200: answer(dataOf(UserSchema), 'User, role and tenant.'), ...guarded },
});

const changeUser = createRoute({
  method: 'patch',
  path: '/v1/user',
  operationId: 'changeUser',
  summary: 'Change your email or password',
  description:
    'Requires the current password. A new password ends all other sessions. SSH keys and API tokens stay. Wrong passwords count as ' +
    'failed logins.',
  tags,
  security: bearer,
  request: {
    body: jsonBody(
      z.object({
        current_password: credentials.password,
        email: credentials.email.optional(),
        password: credentials.password.optional().openapi({ description: 'The new password, 8 to 200 characters.' }),
      }),
      true,
    ),
  },
  responses: { 200: answer(dataOf(UserSchema), 'Changed.'), ...guarded, ...withBody, ...refusalsOf(409) },
});

/** @param clientAddress IP address of the client, as the gateway saw it */
export function addAccountRoutes(
  api: Api,
  accounts: Pick<Accounts, 'signUp' | 'readSelf' | 'changeSelf'>,
  identity: Pick<Identity, 'logIn' | 'refresh' | 'revoke'>,
  clientAddress: (request: Request) => string,
): void {
  const originOf = (c: ApiContext): LoginOrigin => ({
    source: sourceKey(clientAddress(c.req.raw)),
    client: (c.req.header('user-agent') ?? '').slice(0, longestClient),
  });

  api.openapi(signUp, async (c) => {
    const { email, password, tenant_name, invitation_token } = c.req.valid('json');
    const key = c.req.valid('header')['idempotency-key'];
    const { user, tenant, tokens } = await accounts.signUp({
      id: key === undefined ? undefined : await signUpId(key, [email.trim().toLowerCase(), tenant_name, invitation_token]),
      email,
      password,
      origin: originOf(c),
      ...omitUndefined({ tenantName: tenant_name, invitation: invitation_token }),
    });
    const data = {
      user: { id: user.id, email: user.email },
      tenant: { id: tenant.id, name: tenant.name },
      ...presentTokens(tokens),
    };
    return c.json({ data }, 201);
  });

  api.openapi(logIn, async (c) => {
    const { email, password } = c.req.valid('json');
    return c.json({ data: presentTokens(await identity.logIn(email, password, originOf(c))) }, 200);
  });

  api.openapi(refresh, async (c) => {
    return c.json({ data: presentTokens(await identity.refresh(c.req.valid('json').refresh_token)) }, 200);
  });

  api.openapi(logOut, async (c) => {
    await identity.revoke(c.req.valid('json').refresh_token);
    return c.body(null, 204);
  });

  api.openapi(readUser, async (c) => {
    const { principal, tenant } = await accounts.readSelf(c.get('caller'));
    return c.json({ data: presentUser(principal, tenant) }, 200);
  });

  api.openapi(changeUser, async (c) => {
    const { current_password, email, password } = c.req.valid('json');
    const change = { currentPassword: current_password, email, password };
    const { principal, tenant } = await accounts.changeSelf(c.get('caller'), change, originOf(c).source);
    return c.json({ data: presentUser(principal, tenant) }, 200);
  });
}
