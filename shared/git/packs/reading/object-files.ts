import { promisify } from 'node:util';
import { deflate } from 'node:zlib';
import type { PromiseFsClient } from 'isomorphic-git';
import type { ObjectType } from '#shared/git/objects/object-type.ts';

const compress = promisify(deflate);
const objectPath = /(?:^|\/)objects\/([0-9a-f]{2})\/([0-9a-f]{38})$/;

/** An object for a loose file. Without `content` it is missing. */
export interface LooseObject {
  type: ObjectType;
  content: Uint8Array | undefined;
}

/** As isomorphic-git calls it. */
export interface ObjectFiles extends PromiseFsClient {
  promises: PromiseFsClient['promises'] & { readFile(path: string): Promise<Uint8Array> };
}

/**
 * A file system for isomorphic-git with nothing but the loose objects of a repository, made from the objects of its packs.
 */
export function createObjectFiles(readObject: (oid: string) => Promise<LooseObject | undefined>): ObjectFiles {
  const missing = async (path: string): Promise<never> => {
    throw Object.assign(new Error(`there is no file ${path}`), { code: 'ENOENT' });
  };
  return {
    promises: {
      async readFile(path: string) {
        const [, first, rest] = objectPath.exec(path) ?? [];
        const object = first === undefined ? undefined : await readObject(`${first}${rest}`);
        if (object?.content === undefined) return missing(path);
        const header = Buffer.from(`${object.type} ${object.content.length}\0`);
        return compress(Buffer.concat([header, object.content]), { level: 0 });
      },
      stat: missing,
      lstat: missing,
      readdir: missing,
      readlink: missing,
      writeFile: missing,
      unlink: missing,
      mkdir: missing,
      rmdir: missing,
      symlink: missing,
    },
  };
}
