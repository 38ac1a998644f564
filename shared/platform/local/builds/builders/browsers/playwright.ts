/** What Playwright needs whose browsers an app drives, in Node.js and Python. */
import type { BuildStep } from '../../plans/build-plan.ts';

/** What the browsers that it downloads link to. */
export const browserLibraries: readonly string[] = [
  'fonts-liberation', 'libasound2', 'libatk-bridge2.0-0', 'libatk1.0-0', 'libatspi2.0-0', 'libcairo2', 'libcups2', 'libdbus-1-3', 'libdrm2',
  'libgbm1', 'libglib2.0-0', 'libnspr4', 'libnss3', 'libpango-1.0-0', 'libx11-6', 'libxcb1', 'libxcomposite1', 'libxdamage1', 'libxext6',
  'libxfixes3', 'libxkbcommon0', 'libxrandr2',
]; // biome-ignore format: a list of words

/** So that what `playwright install` downloads in a build is part of the image. */
export const playwrightEnv = { PLAYWRIGHT_BROWSERS_PATH: '/app/.playwright' } as const;

/** Railpack's variable says that the build is to install the browser of Playwright. */
export function asksForBrowser(language: 'NODE' | 'PYTHON', env: Readonly<Record<string, string>>): boolean {
  return !['', '0', 'false'].includes(env[`RAILPACK_${language}_PLAYWRIGHT_INSTALL`] ?? '');
}

/** @param program the path of `playwright` */
export function installBrowser(program: string): BuildStep {
  return { title: 'playwright install chromium', argv: [program, 'install', 'chromium'] };
}
