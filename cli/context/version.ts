import packageJson from '../../package.json' with { type: 'json' };

/** Version of the command line. */
export const version = packageJson.version;
