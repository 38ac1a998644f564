/** What the operator decides about builds. */
export interface BuildSettings {
  /** The repository in a registry below which each app has one: 'registry.example.com/paas'. */
  repository: string;
  /** The registry speaks HTTP. */
  insecureRegistry: boolean;
  /**
   * A Secret of the type `kubernetes.io/dockerconfigjson` in `paas-build`, which may push and delete; undefined for a registry
   * without passwords. It is mounted where no code of an app runs.
   */
  registrySecret: string | undefined;
  /** Buildpacks with their lifecycle (platform API 0.13 or later) and `/cnb/lifecycle`. */
  builderImage: string;
  /** The base of the apps' images; undefined: the builder's own. */
  runImage: string | undefined;
  /** Has `sh`, `curl`, `tar` and `sed`. */
  toolsImage: string;
  /** What builds Dockerfiles; undefined: builds of apps with one are refused. */
  dockerfiles: DockerfileSettings | undefined;
  /** Of the step that runs the app's build. */
  memory: string;
  cpu: string;
  /** Of the sandbox that build pods run in, as 'gvisor'; undefined: the cluster's default. */
  runtimeClass: string | undefined;
}

/** Images of the pipeline for Dockerfiles. */
export interface DockerfileSettings {
  /** Rootless BuildKit: has `buildctl-daemonless.sh`. */
  buildkitImage: string;
  /** Has `crane` and a shell in `/busybox/sh`. */
  craneImage: string;
}
