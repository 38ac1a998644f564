/** Packages of Debian that packages of npm are compiled with, or whose programs and libraries they use. */
import { asksForBrowser, browserLibraries, playwrightEnv } from '../browsers/playwright.ts';
import { allDependencies, type PackageJson } from './package-json.ts';

/** Where their binaries cannot be downloaded. */
const libraries: Readonly<Record<string, readonly string[]>> = {
  canvas: ['libcairo2-dev', 'libgif-dev', 'libjpeg-dev', 'libpango1.0-dev', 'libpixman-1-dev', 'librsvg2-dev'],
  'pg-native': ['libpq-dev'],
};

/** A browser without fonts shows empty boxes. */
const chromium = ['chromium', 'fonts-liberation'] as const;

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
      ...(playwright ? playwrightEnv : {}),
    },
  };
}

/** Whether the build is to install a browser. */
export function installsBrowser(env: Readonly<Record<string, string>>, libraries: NodeLibraries): boolean {
  return asksForBrowser('NODE', env) && 'PLAYWRIGHT_BROWSERS_PATH' in libraries.env;
}
