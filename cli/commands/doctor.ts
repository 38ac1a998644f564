import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import { examine, type Finding } from '#cli/commands/doctor-checks.ts';
import { type ExitCode, exitCodes } from '#cli/errors/cli-error.ts';
import { oneLine } from '#cli/output/sanitize.ts';

export const doctor = defineCommand({
  name: 'doctor',
  group: 'Platform',
  summary: 'look for what keeps a git push from working, and say what mends it',
  args: {},
  flags: appFlags,
  details: ['The exit code is 1 when something needs mending.'],
  async run(context, { flags }): Promise<ExitCode | void> {
    const findings: Finding[] = [];
    for await (const finding of examine(context, flags)) {
      findings.push(finding);
      if (context.json) continue;
      const mark = finding.ok ? context.paint('green', 'ok  ') : context.paint('red', 'bad ');
      context.terminal.stdout.write(`${mark} ${finding.check.padEnd(8)}  ${oneLine(finding.detail)}\n`);
      if (finding.mend !== undefined)
        context.terminal.stdout.write(`     ${' '.repeat(8)}  ${context.paint('bold', '→')} ${oneLine(finding.mend)}\n`);
    }
    context.print('', findings);
    return findings.every(({ ok }) => ok) ? undefined : exitCodes.failed;
  },
});
