import { createRoute, z } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import type { ApiMemory } from '#api/http/api-memory.ts';
import { readBody } from '#api/middleware/body-limit.ts';
import type { FailedCredentials } from '#api/middleware/failed-credentials.ts';
import { answer, dataOf, refusalsOf } from '#api/openapi/schemas.ts';
import { createBodyBudget } from '#api/routes/webhooks/body-budget.ts';
import { createFailedDeliveries } from '#api/routes/webhooks/failed-deliveries.ts';
import type { Webhooks } from '#shared/core/webhooks/webhooks.ts';
import { AppError } from '#shared/errors.ts';
import { limits } from '#shared/limits.ts';
import type { EventLimits } from '#shared/rate-limits/event-limits.ts';
import { sourceKey } from '#shared/rate-limits/source-key.ts';

/** Any JSON object. It is parsed by hand, because the signature covers the bytes as they came. */
const payload = { schema: { type: 'object' as const, additionalProperties: true } };

const DeliveryResultSchema = z
  .object({
    outcome: z.enum(['started', 'removed', 'ignored', 'replayed', 'accepted']),
    message: z.string().openapi({ example: 'A build of main at 5478677c was started.' }),
  })
  .openapi('DeliveryResult');

const receiveDelivery = createRoute({
  method: 'post',
  path: '/v1/webhooks/githost',
  operationId: 'receiveDelivery',
  summary: 'Receive a delivery of a git host',
  description:
    'For GitHub, Gitea, Forgejo, GitLab and compatible hosts. The body has up to 25 MiB. It is signed with HMAC-SHA256 ' +
    '(`X-Hub-Signature-256`, `X-Gitea-Signature`, `X-Forgejo-Signature`, `Webhook-Signature`), or the secret is sent in ' +
    '`X-Gitlab-Token`. A delivery is a hint: the git host is then asked for its ' +
    'branches, and what is new is built. A repeated delivery is answered with 200 and starts nothing. ' +
    'An address with 30 wrong signatures or other failed credentials in a minute is refused.',
  tags: ['webhooks'],
  security: [],
  request: {
    query: z.object({
      app: z
        .string()
        .regex(/^[0-9a-f-]{36}$/)
        .optional()
        .openapi({
          description:
            'Id of the app that the webhook belongs to. Default: the webhook of the operator, signed with PAAS_WEBHOOK_SECRET.',
        }),
    }),
    body: {
      required: true,
      content: { 'application/json': payload, 'application/x-www-form-urlencoded': payload },
    },
  },
  responses: {
    200: answer(dataOf(DeliveryResultSchema), 'The result of the delivery.'),
    ...refusalsOf(401, 403, 404, 413, 422, 429, 500, 503),
  },
});

/** Dependencies of the webhook route. */
export interface WebhookOptions {
  failures: FailedCredentials;
  eventLimits: Pick<EventLimits, 'take' | 'refusedMilliseconds'>;
  memory: Pick<ApiMemory, 'provenSenders'>;
  clientAddress(request: Request): string;
}

/** Adds the routes that receive webhook deliveries. */
export function addWebhookRoutes(
  api: Api,
  webhooks: Webhooks,
  { failures, eventLimits, memory, clientAddress }: WebhookOptions,
): void {
  const failed = createFailedDeliveries(eventLimits, memory.provenSenders);
  const budget = createBodyBudget();
  api.openapi(receiveDelivery, async (c) => {
    const header = (name: string): string | undefined => c.req.header(name);
    const { app: appId } = c.req.valid('query');
    const sender = { source: sourceKey(clientAddress(c.req.raw)), secretOf: appId ?? '' };
    // Cheap checks first: the body is read only when its signature can be right.
    failures.check(c.req.raw);
    failed.check(sender);
    const open = budget.open(sender.source, failed.isProven(sender));
    const { webhookBytes: bytes, webhookSeconds: seconds } = limits.http;
    try {
      await webhooks.checkHeaders(header, appId);
      const body = await readBody(c.req.raw, { bytes, seconds, onBytes: open.add });
      const result = await webhooks.receive({ header, body, appId });
      failed.countSuccess(sender);
      return c.json({ data: result }, 200);
    } catch (error) {
      if (error instanceof AppError && error.code === 'unauthorized') await failed.countFailure(sender);
      throw error;
    } finally {
      open.release();
    }
  });
}
