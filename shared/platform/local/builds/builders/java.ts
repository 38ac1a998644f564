import type { VersionRequest } from '../../toolchains/toolchain.ts';
import type { BuildStep } from '../plans/build-plan.ts';
import type { Builder } from '../plans/builder.ts';
import { describeVersion } from '../plans/describe-version.ts';
import type { SourceTree } from '../plans/source-tree.ts';
import type { VersionPins } from '../plans/version-pins.ts';

const manifests = ['pom.xml', 'build.gradle', 'build.gradle.kts', 'settings.gradle', 'gradlew'] as const;

export const javaBuilder: Builder = {
  name: 'java',
  looksFor: 'pom.xml or build.gradle (Java)',
  async detect(source) {
    for (const why of manifests) if (await source.hasFile(why)) return { what: 'Java app', why };
    return undefined;
  },
  async plan(source, context) {
    const maven = await source.hasFile('pom.xml');
    const request = await findJavaRequest(source, context.pins);
    const java = await context.toolchains.findJava(request);
    const wrapper = (await source.hasFile(maven ? 'mvnw' : 'gradlew')) ? (maven ? './mvnw' : './gradlew') : undefined;
    // Debian's packages of a JDK come with Maven.
    const hasMaven = maven && java.mounts.some(({ kind }) => kind === 'stored');
    const tool = wrapper === undefined && !hasMaven ? await context.toolchains.findJavaTool(maven ? 'mvn' : 'gradle') : undefined;
    const program = wrapper ?? (maven ? 'mvn' : 'gradle');
    const arguments_ = maven
      ? ['--batch-mode', '--no-transfer-progress', '-DskipTests', 'package']
      : ['--no-daemon', '--console=plain', 'build', '-x', 'test', '-x', 'check'];
    const steps: readonly BuildStep[] = [
      ...(wrapper === undefined ? [] : [{ title: `chmod +x ${wrapper}`, argv: ['chmod', '+x', wrapper] }]),
      {
        title: `${program} ${maven ? 'package' : 'build'}, cache ${context.cache}`,
        argv: [program, ...arguments_],
        builds: true,
      },
    ];
    return {
      notes: [describeVersion('Java', java.version, request)],
      steps,
      env: {
        JAVA_HOME: java.home,
        MAVEN_USER_HOME: '/cache/maven',
        MAVEN_ARGS: '-Dmaven.repo.local=/cache/maven/repository',
        MAVEN_OPTS: '-Dmaven.repo.local=/cache/maven/repository',
        GRADLE_USER_HOME: '/cache/gradle',
      },
      path: [...java.path, ...(tool?.path ?? [])],
      toolchain: [...java.mounts, ...(tool?.mounts ?? [])],
      cacheDirectories: ['maven', 'gradle'],
      runtimeEnv: { JAVA_HOME: java.home },
      defaultProcesses: async (built) => findProcesses(built, await listOutputs(source, maven)),
      processHint: 'The build left no program in a .jar. Add a Procfile with a line as: web: java -jar target/<name>.jar',
    };
  },
};

/** Pins come first, then system.properties as Heroku reads it, then the release that the compiler is set to. */
async function findJavaRequest(source: SourceTree, pins: VersionPins): Promise<VersionRequest | undefined> {
  const pinned = pins.get('java');
  if (pinned !== undefined) return pinned;
  const properties = /^java\.runtime\.version[ \t]?=[ \t]?([\w.-]{1,40})/m.exec(
    (await source.readText('system.properties')) ?? '',
  )?.[1];
  if (properties !== undefined) return { version: properties, source: 'system.properties' };
  const pom = (await source.readText('pom.xml')) ?? '';
  const release = /<(?:maven\.compiler\.(?:release|source)|java\.version|release)>(?:1\.)?(\d{1,2})</.exec(pom)?.[1];
  return release === undefined ? undefined : { version: `>=${release}`, source: 'pom.xml' };
}

/** Where programs are left: of the app itself, then of its modules. */
async function listOutputs(source: SourceTree, maven: boolean): Promise<readonly string[]> {
  const read = async (name: string): Promise<string> => (await source.readText(name)) ?? '';
  const output = maven ? 'target' : 'build/libs';
  const modules = maven
    ? [...(await read('pom.xml')).matchAll(/<module>\s{0,20}([\w./-]{1,120}?)\s{0,20}<\/module>/g)]
    : [...`${await read('settings.gradle')}\n${await read('settings.gradle.kts')}`.matchAll(/["']:?([\w.:-]{1,120})["']/g)];
  const directories = modules.map(([, name = '']) => name.replaceAll(':', '/')).filter((name) => !name.split('/').includes('..'));
  return [output, ...directories.map((directory) => `${directory}/${output}`)];
}

type Processes = Readonly<Record<string, string>>;

/** Of the app itself; else of its only module with a program, or of the one whose manifest makes a program that brings all it needs. */
async function findProcesses(built: SourceTree, [own = '', ...modules]: readonly string[]): Promise<Processes> {
  const found = await findProgram(built, own);
  if (found !== undefined) return { web: found };
  const programs: { readonly program: string; readonly whole: boolean }[] = [];
  for (const output of modules) {
    const program = await findProgram(built, output);
    if (program !== undefined) programs.push({ program, whole: await makesWholePrograms(built, output) });
  }
  const chosen = programs.length === 1 ? programs[0] : programs.find(({ whole }) => whole);
  return chosen === undefined ? {} : { web: chosen.program };
}

async function makesWholePrograms(built: SourceTree, output: string): Promise<boolean> {
  const directory = output.replace(/\/(target|build\/libs)$/, '');
  for (const name of ['pom.xml', 'build.gradle', 'build.gradle.kts'])
    if (
      /spring-boot-maven-plugin|maven-shade-plugin|maven-assembly-plugin|springframework\.boot|shadow|mainClass/.test(
        (await built.readText(`${directory}/${name}`)) ?? '',
      )
    )
      return true;
  return false;
}

/** The archive that is meant to be run: not one of sources, of documentation or without dependencies. */
async function findProgram(built: SourceTree, directory: string): Promise<string | undefined> {
  if (await built.hasFile(`${directory}/quarkus-app/quarkus-run.jar`))
    return `java $JAVA_OPTS -Dquarkus.http.port=$PORT -jar ${directory}/quarkus-app/quarkus-run.jar`;
  const archives = (await built.list(directory)).filter(
    (name) => /^[\w.+-]+\.[jw]ar$/.test(name) && !/(^original-|-(sources|javadoc|plain|tests)\.[jw]ar$)/.test(name),
  );
  const jars = archives.filter((name) => name.endsWith('.jar'));
  const whole = jars.find((name) => /-(jar-with-dependencies|all|fat|shaded|runner)\.jar$/.test(name));
  const chosen = whole ?? jars[0] ?? archives[0];
  return chosen && `java $JAVA_OPTS -Dserver.port=$PORT -Dmicronaut.server.port=$PORT -jar ${directory}/${chosen}`;
}
