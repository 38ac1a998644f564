import type { Builder } from '../plans/builder.ts';
import { cppBuilder } from './cpp.ts';
import { denoBuilder } from './deno.ts';
import { dotnetBuilder } from './dotnet.ts';
import { elixirBuilder } from './elixir.ts';
import { gleamBuilder } from './gleam.ts';
import { goBuilder } from './go.ts';
import { javaBuilder } from './java.ts';
import { nodeBuilder, nodeScriptBuilder } from './node/node.ts';
import { phpBuilder } from './php.ts';
import { procfileBuilder } from './procfile.ts';
import { pythonBuilder } from './python/python.ts';
import { rubyBuilder } from './ruby.ts';
import { rustBuilder } from './rust.ts';
import { shellBuilder } from './shell.ts';
import { staticBuilder } from './static.ts';

/** In the order in which they are asked. */
export const builders: readonly Builder[] = [
  nodeBuilder,
  goBuilder,
  javaBuilder,
  rustBuilder,
  rubyBuilder,
  phpBuilder,
  pythonBuilder,
  elixirBuilder,
  gleamBuilder,
  dotnetBuilder,
  denoBuilder,
  cppBuilder,
  nodeScriptBuilder,
  staticBuilder,
  shellBuilder,
  procfileBuilder,
];
