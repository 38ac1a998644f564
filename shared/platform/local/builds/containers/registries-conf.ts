/** Configuration of buildah and its libraries for builds of all apps. */

/** How registries of container images are reached. */
export interface ImageRegistries {
  /** Mirrors by registry, asked first: 'docker.io' → 'mirror.example.com:5000/hub'. */
  readonly mirrors: Readonly<Record<string, string>>;
  /** Registries and mirrors without HTTPS, as 'registry.internal:5000'. */
  readonly insecure: readonly string[];
}

/** Of the commands of RUN, in the user namespace of the app. Without those that bubblewrap has taken away, which buildah could not give. */
const runCapabilities = [
  'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'NET_BIND_SERVICE', 'SETFCAP', 'SETGID', 'SETPCAP', 'SETUID', 'SYS_CHROOT',
]; // biome-ignore format: a list of words

/** Files by name, for the directory of buildah's configuration. */
export function planContainersConfig({ mirrors, insecure }: ImageRegistries): Readonly<Record<string, string>> {
  const text = (value: string): string => JSON.stringify(value);
  const mirrored = Object.entries(mirrors).map(
    ([registry, mirror]) =>
      `[[registry]]\nprefix = ${text(registry)}\nlocation = ${text(registry)}\ninsecure = ${insecure.includes(registry)}\n` +
      `[[registry.mirror]]\nlocation = ${text(mirror)}\ninsecure = ${insecure.includes(mirror.split('/')[0] ?? '')}\n`,
  );
  const open = insecure
    .filter((registry) => !(registry in mirrors))
    .map((registry) => `[[registry]]\nprefix = ${text(registry)}\nlocation = ${text(registry)}\ninsecure = true\n`);
  return {
    'registries.conf': [
      'unqualified-search-registries = ["docker.io"]\nshort-name-mode = "permissive"\n',
      ...mirrored,
      ...open,
    ].join('\n'),
    // Signatures are those of the app's own choice of image: its digest pins it.
    'policy.json': JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }),
    // Mounted by the kernel, not by a program of the host that is for ordinary users.
    'storage.conf':
      '[storage]\ndriver = "overlay"\nrunroot = "/tmp/buildah-run"\ngraphroot = "/cache/containers/storage"\n[storage.options.overlay]\nmount_program = ""\n',
    'containers.conf': `[containers]\ndefault_capabilities = [${runCapabilities.map(text).join(', ')}]\n[engine]\ntmp_dir = "/tmp/buildah-run/libpod"\n`,
  };
}
