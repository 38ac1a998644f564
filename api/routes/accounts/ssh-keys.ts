import { createRoute, z } from '@hono/zod-openapi';
import { type Api, newResourceId } from '#api/http/api-env.ts';
import {
  answer,
  bearer,
  dataOf,
  guarded,
  idempotencyHeader,
  jsonBody,
  lineOf,
  pageOf,
  pageQuery,
  presentPage,
  refusalsOf,
  sshKeyParams,
  toPageQuery,
  withBody,
} from '#api/openapi/schemas.ts';
import { presentSshKey, SshKeySchema } from '#api/resources/ssh-key.ts';
import type { SshKeys } from '#shared/core/accounts/accounts.ts';
import type { SshKeyId } from '#shared/ids.ts';

const tags = ['ssh-keys'];

const addKey = createRoute({
  method: 'post',
  path: '/v1/auth/ssh-keys',
  operationId: 'addSshKey',
  summary: 'Add an SSH key',
  tags,
  security: bearer,
  request: {
    headers: idempotencyHeader,
    body: jsonBody(
      z.object({
        name: lineOf(100).openapi({ description: 'Name of the key. Empty: its comment.', example: 'laptop' }),
        public_key: z
          .string()
          .min(1)
          .max(16_384)
          .openapi({ description: 'Public key in OpenSSH format, as in `id_ed25519.pub`.' }),
        signature: z
          .string()
          .min(1)
          .max(16_384)
          .optional()
          .openapi({
            description:
              'Proof that you have the private key, which moves the key from another account to yours. It is what `ssh-keygen -Y sign -n ' +
              'paas` prints for the text `SSH key of user <your user id> at <URL of the platform>`.',
          }),
      }),
      true,
    ),
  },
  responses: { 201: answer(dataOf(SshKeySchema), 'Added.'), ...guarded, ...withBody, ...refusalsOf(409) },
});

const listKeys = createRoute({
  method: 'get',
  path: '/v1/auth/ssh-keys',
  operationId: 'listSshKeys',
  summary: 'List your SSH keys, newest first',
  tags,
  security: bearer,
  request: { query: pageQuery },
  responses: { 200: answer(pageOf(SshKeySchema), 'A page of keys.'), ...guarded, ...refusalsOf(422) },
});

const deleteKey = createRoute({
  method: 'delete',
  path: '/v1/auth/ssh-keys/{key}',
  operationId: 'deleteSshKey',
  summary: 'Delete an SSH key',
  tags,
  security: bearer,
  request: { params: sshKeyParams },
  responses: { 204: { description: 'Deleted.' }, ...guarded, ...refusalsOf(404) },
});

/** Adds the routes of SSH keys. */
export function addSshKeyRoutes(api: Api, sshKeys: Pick<SshKeys, 'addKey' | 'listKeys' | 'deleteKey'>): void {
  api.openapi(addKey, async (c) => {
    const { name, public_key, signature } = c.req.valid('json');
    const request = { ...newResourceId<SshKeyId>(c), name, publicKey: public_key, signature };
    const key = await sshKeys.addKey(c.get('caller'), request);
    return c.json({ data: presentSshKey(key) }, 201);
  });

  api.openapi(listKeys, async (c) => {
    const page = await sshKeys.listKeys(c.get('caller'), toPageQuery(c.req.valid('query')));
    return c.json(presentPage(page, presentSshKey), 200);
  });

  api.openapi(deleteKey, async (c) => {
    await sshKeys.deleteKey(c.get('caller'), c.req.valid('param').key);
    return c.body(null, 204);
  });
}
