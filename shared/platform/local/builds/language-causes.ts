/** A failure that a tool reports in a text of its own. */
export interface KnownCause {
  readonly pattern: RegExp;
  readonly cause: (match: RegExpExecArray) => string;
}

/** Texts that Bundler, Rails, Composer and Mix end with. */
export const languageCauses: readonly KnownCause[] = [
  {
    pattern:
      /after changing\s{1,9}your Gemfile|because frozen mode is set|You have (?:added to|deleted from|changed in) the Gemfile/,
    cause: () => 'Gemfile.lock does not match Gemfile. Run `bundle install` and commit Gemfile.lock.',
  },
  {
    pattern: /Your bundle only supports platforms[^]{0,500}?local platform is\s{1,9}(\S{1,60}?)\./,
    cause: ([, platform]) =>
      `Gemfile.lock is for other platforms. Run \`bundle lock --add-platform ${platform}\` and commit Gemfile.lock.`,
  },
  {
    pattern: /Could not find gem '([^'\n]{1,200})' in/,
    cause: ([, gem]) => `There is no gem ${gem}. Check its name and version in Gemfile.`,
  },
  {
    pattern: /Missing `secret_key_base`/,
    cause: () => 'Rails needs a secret: paas config:set SECRET_KEY_BASE=$(openssl rand -hex 64)',
  },
  {
    pattern: /An error occurred while installing (\S{1,100}) \(([^)\n]{1,60})\)/,
    cause: ([, gem, version]) => `The gem ${gem} ${version} could not be installed. The lines above say why.`,
  },
  {
    pattern: /requires (?:PHP extension )?ext-([\w-]{1,60}) [^\n]{0,200}missing from your system/,
    cause: ([, name]) => `composer.json asks for the extension ${name}, which the PHP of this platform does not have.`,
  },
  {
    pattern: /requires php ([^\n]{1,80}?) -> your php version \(([\w.]{1,40})/,
    cause: ([, wanted, has]) => `A package needs PHP ${wanted}, and the app runs on ${has}. Set "php" in composer.json.`,
  },
  {
    pattern: /Your lock file does not contain a compatible set of packages|is not present in the lock file/,
    cause: () => 'composer.lock does not match composer.json. Run `composer update` and commit composer.lock.',
  },
];
