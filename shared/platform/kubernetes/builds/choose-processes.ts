import { omitUndefined } from '#shared/omit-undefined.ts';
import type { Procfile } from '#shared/platform/procfile.ts';
import type { ImageConfig } from '../images/image-config.ts';

/** What an image runs. */
export interface ChosenProcesses {
  processes: Readonly<Record<string, string>>;
  releaseCommand?: string;
}

/** The types of the Procfile; without one for 'web', what the image runs by itself. `fault`: there is nothing to run. */
export function chooseProcesses(image: ImageConfig, procfile: Procfile | undefined): ChosenProcesses | { fault: string } {
  const processes = { ...(image.command === undefined ? {} : { web: image.command }), ...procfile?.processes };
  if (Object.keys(processes).length === 0)
    return {
      fault:
        'The image has no command to run. Add a Procfile with a line as: web: ./server — or CMD to the Dockerfile, if there is one.',
    };
  return { processes, ...omitUndefined({ releaseCommand: procfile?.releaseCommand }) };
}
