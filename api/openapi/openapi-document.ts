import type { Api } from '#api/http/api-env.ts';
import { describeHeaders } from './response-headers.ts';

/** The OpenAPI 3.1 document of all routes that were added to `api`. */
export function openApiDocument(api: Api) {
  api.openAPIRegistry.registerComponent('securitySchemes', 'bearer', {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description:
      'The `access_token` of a signup, login or refresh, or an API token (`paas_…`). A user with several tenants acts in the one ' +
      'they joined first. The header `X-Paas-Tenant` selects another one by its id. An API token acts in the tenant it was created in.',
  });
  const document = api.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'paas',
      version: '1',
      description:
        'A self-hosted platform that you `git push` to. Each route is also available under `/api/v1`. A success is `{data}`, ' +
        'a list is `{data, next_cursor}`, an error is `{error}`. Rate limits: 600 requests per minute and token. Signup and `/v1/auth` ' +
        'without a token: 30 requests per minute and source address. A path that does not support the method of a request is answered ' +
        'with 405, the code `validation_failed` and the header `Allow`.',
      license: { name: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: [
      { name: 'accounts', description: 'Signup, login and the current user.' },
      { name: 'ssh-keys', description: 'SSH keys for `git push`.' },
      { name: 'tokens', description: 'API tokens for CI and other programs.' },
      { name: 'team', description: 'Members of a tenant, their roles, and invitations.' },
      { name: 'apps', description: 'Apps and their git sources.' },
      { name: 'builds', description: 'Builds, their logs and their cache.' },
      { name: 'releases', description: 'Releases, deploys and rollbacks.' },
      { name: 'config', description: 'Config variables of an app.' },
      { name: 'settings', description: 'Health check, boot time-out, session affinity and source folder of an app.' },
      { name: 'processes', description: 'Processes of an app: list, scale, restart.' },
      { name: 'repositories', description: "Commits of an app's repository and their files." },
      { name: 'domains', description: 'Custom domains of an app.' },
      { name: 'addons', description: 'Databases and key-value stores of an app.' },
      { name: 'webhooks', description: 'Deliveries of git hosts.' },
      { name: 'logs', description: 'Logs of an app.' },
      { name: 'metrics', description: 'Resource use, traffic and latency of an app.' },
      { name: 'internal', description: 'For the pipelines of builds, not for clients.' },
      { name: 'service', description: 'Health, API description and token verification.' },
    ],
  });
  return describeHeaders(document);
}
