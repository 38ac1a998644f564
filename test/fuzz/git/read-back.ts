import { rmSync } from 'node:fs';
import { readWholeTree } from '#shared/git/object-graph/read-tree.ts';
import { selectEverything } from '#shared/git/object-graph/whole-packs.ts';
import { startObjectHash } from '#shared/git/objects/hash-object.ts';
import { objectTypes } from '#shared/git/objects/object-type.ts';
import { type IntakeRequest, intakePack } from '#shared/git/packs/intake/pack-intake.ts';
import { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import { OpenPack } from '#shared/git/packs/reading/open-pack.ts';
import { writePack } from '#shared/git/packs/writing/pack-writer.ts';
import { streamed } from '#shared/git/testing/mutation.ts';

/**
 * Reads an accepted pack like later readers: every object by its id, the files of every commit, and the whole pack for a client,
 * which is received again.
 * @throws Error when something differs from what was sent
 */
export async function readBack(request: IntakeRequest, stored: ObjectDatabase, offsetDeltas: boolean): Promise<void> {
  const { packPath, indexPath, linksPath } = request;
  const received = new OpenPack({ key: packPath, pack: packPath, index: indexPath, links: linksPath });
  const alone = new ObjectDatabase([received]);
  const database = new ObjectDatabase([...stored.packs, received]);
  try {
    for (let position = 0; position < received.index.objectCount; position++) {
      const oid = received.index.oidAt(position);
      const { type, data } = alone.read(oid) ?? { type: 0, data: Buffer.alloc(0) };
      if (type !== alone.readType(oid) || !startObjectHash(type, data.length).update(data).digest().equals(oid))
        throw new Error(`object ${oid.toString('hex')} is read as another one`);
      const found = alone.find(oid);
      if (found === undefined || alone.readSize(found) !== data.length)
        throw new Error(`object ${oid.toString('hex')} is read with another size`);
      if (type === objectTypes.commit) await readWholeTree(database, oid.toString('hex'), () => undefined);
    }
    const pieces: Buffer[] = [];
    const contents = await selectEverything(alone, () => undefined);
    const write = async (chunk: Uint8Array): Promise<void> => void pieces.push(Buffer.from(chunk));
    const form = { thin: false, offsetDeltas };
    await writePack(alone, { contents, form, write, yieldToEventLoop: () => undefined });
    const paths = { packPath: `${packPath}-again`, indexPath: `${indexPath}-again`, linksPath: `${linksPath}-again` };
    try {
      const again = await intakePack(streamed(pieces), { ...request, ...paths }, stored, () => undefined);
      if (again?.objectCount !== received.index.objectCount) throw new Error('a fetch does not return what was pushed');
    } catch (error) {
      throw new Error('what was pushed cannot be fetched', { cause: error });
    } finally {
      for (const path of Object.values(paths)) rmSync(path, { force: true });
    }
  } finally {
    alone.close();
    database.close();
    received.close();
  }
}
