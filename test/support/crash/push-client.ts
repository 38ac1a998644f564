import { connect } from 'node:net';
import { ByteReader } from '#shared/byte-reader.ts';
import { encodePacket, flushPacket, packetText, readPacket } from '#shared/git/protocol/pkt-line.ts';
import { commitOf, PackBuilder, treeEntry } from '#shared/git/testing/pack-builder.ts';

const none = '0'.repeat(40);

/** Object ids; undefined where the ref does not exist. */
export interface RefUpdate {
  name: string;
  from: string | undefined;
  to: string | undefined;
}

/** By ref: 'ok', or the reason of the refusal. Undefined when the connection ended before the server reported. */
export type PushReport = ReadonlyMap<string, string> | undefined;

/** Pushes without git, which is cheap enough for a hundred pushes a second. @param socketPath the socket of `serveGit` */
export async function pushPack(
  socketPath: string,
  repository: string,
  updates: readonly RefUpdate[],
  { pack, atomic = false, options = [] }: { pack?: Buffer; atomic?: boolean; options?: readonly string[] } = {},
): Promise<PushReport> {
  const socket = connect(socketPath);
  const failed = new Promise<undefined>((resolve) => socket.on('error', () => resolve(undefined)));
  socket.write(`${JSON.stringify({ service: 'receive-pack', repository, protocol: '' })}\n`);
  const push = async (): Promise<PushReport> => {
    const reader = new ByteReader(socket);
    await readUntilFlush(reader);
    const capabilities = `\0report-status${atomic ? ' atomic' : ''}${options.length === 0 ? '' : ' push-options'}`;
    const optionPackets = options.length === 0 ? [] : [...options.map((option) => encodePacket(option)), flushPacket];
    const commands = updates.map(({ name, from, to }, index) =>
      encodePacket(`${from ?? none} ${to ?? none} ${name}${index === 0 ? capabilities : ''}`),
    );
    socket.write(Buffer.concat([...commands, flushPacket, ...optionPackets, ...(pack === undefined ? [] : [pack])]));
    const report = new Map<string, string>();
    for (const line of await readUntilFlush(reader)) {
      const [, verdict, name = '', reason = ''] = /^(ok|ng) (\S+) ?(.*)$/.exec(line) ?? [];
      if (verdict !== undefined) report.set(name, verdict === 'ok' ? 'ok' : reason);
    }
    return report;
  };
  try {
    return await Promise.race([push().catch(() => undefined), failed]);
  } finally {
    socket.destroy();
  }
}

/** @throws Error when the connection ends before the flush packet */
async function readUntilFlush(reader: ByteReader): Promise<string[]> {
  const lines: string[] = [];
  for (;;) {
    const packet = await readPacket(reader);
    if (packet === 'flush') return lines;
    if (typeof packet === 'string') throw new Error('The server closed the connection.');
    lines.push(packetText(packet).trim());
  }
}

const procfile = 'web: serve\n';

/** A chain of commits as one pack; each commit has a Procfile and a file of its own. @returns their ids, oldest first */
export function packCommits(contents: readonly string[], parent: string | undefined): { oids: readonly string[]; pack: Buffer } {
  const pack = new PackBuilder();
  const procfileOid = pack.add('blob', procfile);
  const oids: string[] = [];
  for (const content of contents) {
    const entries = [treeEntry('100644', 'Procfile', procfileOid), treeEntry('100644', 'word', pack.add('blob', content))];
    const tree = pack.add('tree', Buffer.concat(entries));
    const below = oids.at(-1) ?? parent;
    oids.push(pack.add('commit', commitOf(tree, ...(below === undefined ? [] : [`parent ${below}`]))));
  }
  return { oids, pack: pack.build() };
}

/** One commit on top of another. */
export function packCommit(content: string, parent: string | undefined): { oid: string; pack: Buffer } {
  const { oids, pack } = packCommits([content], parent);
  return { oid: oids[0] ?? '', pack };
}
