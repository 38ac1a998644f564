import type { Builder } from '../plans/builder.ts';
import { goBuilder } from './go.ts';
import { nodeBuilder } from './node/node.ts';
import { procfileBuilder } from './procfile.ts';
import { pythonBuilder } from './python/python.ts';
import { rustBuilder } from './rust.ts';
import { staticBuilder } from './static.ts';

/** In the order they are asked; the first that detects its language builds. */
export const builders: readonly Builder[] = [nodeBuilder, pythonBuilder, goBuilder, rustBuilder, staticBuilder, procfileBuilder];
