import { defineCommand } from '#cli/command-line/command.ts';
import { oneLine } from '#cli/output/sanitize.ts';
import { table } from '#cli/output/table.ts';
import { answerOf } from '#shared/api-client/client.ts';

const titles: Readonly<Record<string, string>> = {
  apps: 'apps',
  instances: 'instances',
  memory_mib: 'memory of instances (MiB)',
  builds_per_hour: 'builds in an hour',
  kvstores: 'key-value stores',
  kvstore_memory_mib: 'memory of key-value stores (MiB)',
  databases: 'databases',
};

export const quotas = defineCommand({
  name: 'quotas',
  group: 'Team',
  summary: 'show what your team may have, and what it has',
  details: ['The operator of the platform sets the quotas.'],
  args: {},
  flags: {},
  async run(context) {
    const { data } = await answerOf((await context.api()).GET('/v1/quotas'));
    const rows = data.map(({ name, limit, used }) => {
      const figures = limit === null ? `${used}, no limit` : `${used} of ${limit}`;
      return [titles[name] ?? oneLine(name), limit !== null && used >= limit ? context.paint('yellow', figures) : figures];
    });
    context.print(table(rows), data);
  },
});
