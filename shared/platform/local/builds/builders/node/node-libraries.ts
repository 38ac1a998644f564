/** Packages of Debian that packages of npm are compiled with, or whose programs and libraries they use. */
import { allDependencies, type PackageJson } from './package-json.ts';

/** Where their binaries cannot be downloaded. */
const libraries: Readonly<Record<string, readonly string[]>> = {
  canvas: ['libcairo2-dev', 'libgif-dev', 'libjpeg-dev', 'libpango1.0-dev', 'libpixman-1-dev', 'librsvg2-dev'],
  'pg-native': ['libpq-dev'],
};

/** A browser without fonts shows empty boxes. */
const chromium = ['chromium', 'fonts-liberation'] as const;

/** What the browsers that Playwright downloads link to. */
const browserLibraries = [
  'fonts-liberation', 'libasound2', 'libatk-bridge2.0-0', 'libatk1.0-0', 'libatspi2.0-0', 'libcairo2', 'libcups2', 'libdbus-1-3', 'libdrm2',
  'libgbm1', 'libglib2.0-0', 'libnspr4', 'libnss3', 'libpango-1.0-0', 'libx11-6', 'libxcb1', 'libxcomposite1', 'libxdamage1', 'libxext6',
  'libxfixes3', 'libxkbcommon0', 'libxrandr2',
] as const; // biome-ignore format: a list of words

/** What the packages of an app need of the system, in builds and at run time. */
export interface NodeLibraries {
  readonly systemPackages: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** @param packages of the workspace, by directory */
export function findNodeLibraries(packages: ReadonlyMap<string, PackageJson>): NodeLibraries {
  const manifests = [...packages.values()];
  const all = new Set(manifests.flatMap((manifest) => Object.keys(allDependencies(manifest))));
  // Those of tests are development dependencies, and need no browser here.
  const running = new Set(manifests.flatMap(({ dependencies }) => Object.keys(dependencies ?? {})));
  const drivesChromium = running.has('puppeteer');
  const playwright = running.has('playwright') || running.has('playwright-chromium');
  return {
    systemPackages: [
      ...[...all].flatMap((name) => (Object.hasOwn(libraries, name) ? (libraries[name] ?? []) : [])),
      ...(drivesChromium ? chromium : []),
      ...(playwright ? browserLibraries : []),
    ],
    env: {
      // Its own download goes to the home directory, which is no part of the image.
      ...(drivesChromium ? { PUPPETEER_SKIP_DOWNLOAD: 'true', PUPPETEER_EXECUTABLE_PATH: '/usr/bin/chromium' } : {}),
      // So that what `playwright install` downloads in a build is part of the image.
      ...(playwright ? { PLAYWRIGHT_BROWSERS_PATH: '/app/.playwright' } : {}),
    },
  };
}

/** Railpack's variable says that the build is to install the browser of Playwright. */
export function installsBrowser(env: Readonly<Record<string, string>>, packages: ReadonlyMap<string, PackageJson>): boolean {
  const wanted = env['RAILPACK_NODE_PLAYWRIGHT_INSTALL'] ?? '';
  return !['', '0', 'false'].includes(wanted) && findNodeLibraries(packages).env['PLAYWRIGHT_BROWSERS_PATH'] !== undefined;
}
