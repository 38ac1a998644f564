import type { Api } from '#api/http/api-env.ts';

/** The OpenAPI 3.1 document of all routes that were added to `api`. */
export function openApiDocument(api: Api) {
  api.openAPIRegistry.registerComponent('securitySchemes', 'bearer', {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description:
      'The `access_token` of signup, login or refresh, or an API token (`paas_…`), which ends when it expires or is revoked. ' +
      'Who belongs to several tenants acts in the one they have been in longest, or in the one named by id in the header ' +
      '`X-Paas-Tenant`; an API token acts in the tenant it was made in.',
  });
  return api.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'paas',
      version: '1',
      description:
        'The platform you git push to. Every route also answers under `/api/v1`. Success is `{data}`, a list `{data, next_cursor}`, ' +
        'an error `{error}`. Rates are limited: 600 requests a minute for who is logged in, 30 a minute and address for signing up and in.',
      license: { name: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: [
      { name: 'accounts', description: 'Signing up, logging in, who one is.' },
      { name: 'ssh-keys', description: 'Keys to push with.' },
      { name: 'tokens', description: 'API tokens, for programs.' },
      { name: 'team', description: 'Who belongs to a tenant, and as what.' },
      { name: 'apps', description: 'Apps and where their source comes from.' },
      { name: 'builds', description: 'Builds, their logs and their cache.' },
      { name: 'releases', description: 'Releases, their deploys, and the way back.' },
      { name: 'config', description: 'Variables of an app.' },
      { name: 'processes', description: 'What runs, how often, and its restart.' },
      { name: 'domains', description: 'Hosts of one’s own that lead to an app.' },
      { name: 'logs', description: 'What apps say.' },
      { name: 'metrics', description: 'What apps use, and how they answer.' },
      { name: 'service', description: 'The service itself.' },
    ],
  });
}
