/** The format of `test.json`, which says what an example app must answer or print; as in Railpack's repository. */
import { z } from 'zod';

const texts = z.union([z.string().transform((text) => [text]), z.array(z.string())]).default([]);

const caseSchema = z.object({
  /** All of them must be printed; with `httpCheck` absent. */
  expectedOutput: texts,
  envs: z.record(z.string(), z.string()).default({}),
  httpCheck: z.object({ path: z.string().default('/'), expected: z.number().default(200), expectedOutput: texts }).optional(),
  /** Another configuration file than railpack.json. */
  configFile: z.string().optional(),
  /** An architecture as Docker names it: 'linux/arm64'. */
  platform: z.string().optional(),
  shouldFail: z.boolean().default(false),
});

export type AppCase = z.infer<typeof caseSchema>;

/** An app without test.json must answer / with 200. */
const answers: AppCase = caseSchema.parse({ httpCheck: {} });

/** Printed by the web servers of Railpack's images (Caddy), not by the apps: these apps must answer / instead. */
const linesOfRailpack = ['using config from file', 'starting server loop'];

/** Versions of Rust that Railpack chooses by itself: by the edition of Cargo.toml, or the oldest that "rust-version" allows. */
const versionsOfRailpack = / ?\(rustc 1\.(?:56\.0|84\.0|85\.1|89\.0)\)/g;

/**
 * @param text JSON with `//` comments and trailing commas; undefined where the app has no test.json
 * @returns the cases that can be judged on this machine: those for another architecture are left out
 */
export function parseAppCases(text: string | undefined, architecture: string): readonly AppCase[] {
  if (text === undefined) return [answers];
  const cases = z.array(caseSchema).parse(JSON.parse(toPlainJson(text)));
  const judged = cases.map((appCase) =>
    appCase.expectedOutput.some((text) => linesOfRailpack.includes(text)) ? { ...answers, envs: appCase.envs } : appCase,
  );
  const others = judged.map((appCase) => ({
    ...appCase,
    expectedOutput: appCase.expectedOutput.map((text) => text.replaceAll(versionsOfRailpack, '')),
  }));
  const docker = architecture === 'x64' ? 'amd64' : architecture;
  return others.filter(({ platform }) => platform === undefined || platform.split('/')[1] === docker);
}

/** Without comments and trailing commas, which JSON does not have. Strings stay as they are. */
function toPlainJson(text: string): string {
  const tokens = /"(?:[^"\\]|\\.)*"|\/\/[^\n]*|\/\*[^]*?\*\/|,(?=\s*(?:\/\/[^\n]*\n\s*)*[\]}])/g;
  return text.replaceAll(tokens, (token) => (token.startsWith('"') ? token : ''));
}
