import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import { examine, type Finding } from '#cli/doctor/doctor-checks.ts';
import { type ExitCode, exitCodes } from '#cli/errors/cli-error.ts';
import { oneLine } from '#cli/output/sanitize.ts';

export const doctor = defineCommand({
  name: 'doctor',
  group: 'Platform',
  summary: 'find problems that prevent a git push, and show how to fix them',
  args: {},
  flags: appFlags,
  details: ['The exit code is 1 if there is a problem.'],
  async run(context, { flags }): Promise<ExitCode | void> {
    const findings: Finding[] = [];
    for await (const finding of examine(context, flags)) {
      findings.push(finding);
      if (context.json) continue;
      const mark = finding.ok ? context.paint('green', 'ok  ') : context.paint('red', 'bad ');
      context.terminal.stdout.write(`${mark} ${finding.check.padEnd(8)}  ${oneLine(finding.detail)}\n`);
      if (finding.fix !== undefined)
        context.terminal.stdout.write(`     ${' '.repeat(8)}  ${context.paint('bold', '→')} ${oneLine(finding.fix)}\n`);
    }
    context.print('', findings);
    return findings.every(({ ok }) => ok) ? undefined : exitCodes.failed;
  },
});
