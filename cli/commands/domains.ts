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
  summary: "the app's own domains",
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const { data } = await answerOf((await context.api()).GET('/v1/apps/{id}/domains', { params: { path: { id: app } } }));
    if (data.length === 0) context.talk(`${app} has no domains of its own. Add one with \`paas domains:add www.example.com\`.`);
    const rows = data.map((domain) => [
      domain.host,
      context.paint(domain.status === 'active' ? 'green' : 'yellow', domain.status),
      describeCertificate(context, domain),
    ]);
    context.print(table(rows), data);
    for (const domain of data) tellProof(context, domain);
  },
});

export const domainsAdd = defineCommand({
  name: 'domains:add',
  group: 'Domains',
  summary: 'let a domain lead to the app',
  args: { host: { kind: 'required', summary: 'as www.example.com' } },
  flags: appFlags,
  details: ['Run it again once the DNS record that it asks for is there: it is then looked for at once.'],
  examples: ['paas domains:add www.example.com'],
  async run(context, { args, flags }) {
    const app = await context.appName(flags);
    const api = await context.api();
    const call = api.POST('/v1/apps/{id}/domains', { params: { path: { id: app } }, body: { host: args.host } });
    const { data } = await context.doing(`Adding ${args.host} to ${app}`, answerOf(call), ({ data: { status } }) => status);
    tellProof(context, data);
    context.print('', data);
  },
});

export const domainsRemove = defineCommand({
  name: 'domains:remove',
  group: 'Domains',
  summary: 'take a domain away from the app',
  args: { host: { kind: 'required', summary: 'as `paas domains` lists it' } },
  flags: appFlags,
  async run(context, { args, flags }) {
    const app = await context.appName(flags);
    const api = await context.api();
    const call = api.DELETE('/v1/apps/{id}/domains/{host}', { params: { path: { id: app, host: args.host } } });
    await context.doing(`Removing ${args.host} from ${app}`, succeeded(call));
    context.print('', { host: args.host });
  },
});

function describeCertificate(context: Context, { certificate }: Domain): string {
  if (certificate.expires_at === null) return '';
  return `certificate ends ${relativeTime(certificate.expires_at, context.now())}`;
}

/** What is left to do, where something is. */
function tellProof(context: Context, { host, proof }: Domain): void {
  if (proof === null) return;
  context.talk(`To prove that ${host} is yours, publish this DNS record, and point ${host} itself at the platform:`);
  context.talk(`  ${proof.name}  TXT  "${proof.value}"`);
}
