import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import type { Context } from '#cli/context/context.ts';
import { relativeTime } from '#cli/output/relative-time.ts';
import { table } from '#cli/output/table.ts';
import { answerOf, succeeded } from '#shared/api-client/client.ts';
import type { components } from '#shared/api-client/openapi-types.ts';

type Domain = components['schemas']['Domain'];

export const domains = defineCommand({
  name: 'domains',
  group: 'Domains',
  summary: 'list the custom domains of the app',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const { data } = await answerOf((await context.api()).GET('/v1/apps/{id}/domains', { params: { path: { id: app } } }));
    if (data.length === 0) context.report(`${app} has no custom domains. Add one with \`paas domains:add www.example.com\`.`);
    const rows = data.map((domain) => [
      domain.host,
      context.paint(domain.status === 'active' ? 'green' : 'yellow', domain.status),
      describeCertificate(context, domain),
    ]);
    context.print(table(rows), data);
    for (const domain of data) reportProof(context, domain);
  },
});

export const domainsAdd = defineCommand({
  name: 'domains:add',
  group: 'Domains',
  summary: 'add a custom domain to the app',
  args: { host: { kind: 'required', summary: 'host name, for example www.example.com' } },
  flags: appFlags,
  details: ['The command prints a DNS record to publish. Run the command again to check the record at once.'],
  examples: ['paas domains:add www.example.com'],
  async run(context, { args, flags }) {
    const app = await context.appName(flags);
    const api = await context.api();
    const call = api.POST('/v1/apps/{id}/domains', { params: { path: { id: app } }, body: { host: args.host } });
    const { data } = await context.showProgress(
      `Adding ${args.host} to ${app}`,
      answerOf(call),
      ({ data: { status } }) => status,
    );
    reportProof(context, data);
    context.print('', data);
  },
});

export const domainsRemove = defineCommand({
  name: 'domains:remove',
  group: 'Domains',
  summary: 'remove a custom domain from the app',
  args: { host: { kind: 'required', summary: 'host name, from `paas domains`' } },
  flags: appFlags,
  async run(context, { args, flags }) {
    const app = await context.appName(flags);
    const api = await context.api();
    const call = api.DELETE('/v1/apps/{id}/domains/{host}', { params: { path: { id: app, host: args.host } } });
    await context.showProgress(`Removing ${args.host} from ${app}`, succeeded(call));
    context.print('', { host: args.host });
  },
});

function describeCertificate(context: Context, { certificate }: Domain): string {
  if (certificate.expires_at === null) return '';
  return `certificate expires ${relativeTime(certificate.expires_at, context.now())}`;
}

/** Prints the DNS record that is still needed. */
function reportProof(context: Context, { host, proof }: Domain): void {
  if (proof === null) return;
  context.report(`Publish this DNS record to prove that ${host} is yours, and point ${host} at the platform:`);
  context.report(`  ${proof.name}  TXT  "${proof.value}"`);
}
