import { AppError } from '#shared/errors.ts';
import { GitFault } from '#shared/git/git-fault.ts';
import type { ApplyPush, GitRepository, GitStream, PushEnd, RefResult, StagedPack } from '#shared/git/git-storage.ts';
import type { Inspection } from '#shared/git/object-graph/inspect-objects.ts';
import { PackStorageError } from '#shared/git/packs/files/pack-files.ts';
import { openQuarantine, type Quarantine } from '#shared/git/packs/files/quarantine.ts';
import type { PackLimits } from '#shared/git/packs/intake/pack-scanner.ts';
import { ByteReader } from '#shared/git/protocol/byte-reader.ts';
import { encodePacket, flushPacket } from '#shared/git/protocol/pkt-line.ts';
import { dataBand, encodeBand } from '#shared/git/protocol/side-band.ts';
import { SideBandWriter } from '#shared/git/protocol/side-band-writer.ts';
import { checkChanges, nameProblem } from '#shared/git/receive-pack/check-changes.ts';
import {
  advertiseForPush,
  encodeReport,
  type PushAsked,
  readPush,
  UnreadablePush,
} from '#shared/git/receive-pack/push-protocol.ts';
import { stagePack } from '#shared/git/receive-pack/stage-pack.ts';
import { locatePacks, type RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { ObjectId } from '#shared/ids.ts';

export interface PushLimits extends PackLimits {
  /** Refs a push may change. */
  refs: number;
  /** Refs a repository may have. */
  repositoryRefs: number;
  /** Time for the pack to arrive. */
  seconds: number;
}

/** Exit status of `git receive-pack` when the client could not be served at all. */
const fatal = 128;
/** What is missing is most likely what a shallow clone left out. */
const shallowHint = ' !     Your clone is shallow. Get the rest with `git fetch --unshallow`, then push again.';
const internalProblem = 'the server has failed; nothing was changed, try again';
const diskProblem = "the server's disk is full; nothing was changed, tell its operator";
/** While refs were about to move. */
const unknownProblem = 'the server has failed on the way; push again, and what has arrived already stays as it is';

/** See `GitServer.receivePack`. */
export async function receivePack(
  access: RepositoryAccess,
  limits: PushLimits,
  { repositoryId }: GitRepository,
  stream: GitStream,
  applyPush: ApplyPush,
): Promise<PushEnd> {
  const reader = new ByteReader(stream.input);
  let asked: PushAsked | undefined;
  try {
    if (stream.step !== 'serve') await advertiseForPush(await access.refs.listRefs(repositoryId), (bytes) => stream.write(bytes));
    if (stream.step === 'advertise') return { exitStatus: 0, refsAsked: 0 };
    asked = await readPush(reader, limits.refs);
  } catch (error) {
    if (stream.clientGone.aborted) return { exitStatus: fatal, refsAsked: 0 };
    if (!(error instanceof GitFault)) throw error;
    const answer = encodePacket(`ERR ${error.message}\n`);
    const { sideBand, packFollows } = error instanceof UnreadablePush ? error : { sideBand: false, packFollows: false };
    await stream.write(sideBand ? encodeBand(dataBand, answer) : answer).catch(() => undefined);
    if (packFollows) await drain(reader.rest(), limits.packBytes, stream.clientGone);
    return { exitStatus: fatal, refsAsked: 0 };
  }
  if (asked === undefined) return { exitStatus: 0, refsAsked: 0 };
  const push = new Push(access, limits, repositoryId, asked, stream, reader);
  return { exitStatus: await push.run(applyPush), refsAsked: asked.changes.length };
}

class Push {
  readonly #access: RepositoryAccess;
  readonly #limits: PushLimits;
  readonly #repositoryId: GitRepository['repositoryId'];
  readonly #asked: PushAsked;
  readonly #stream: GitStream;
  readonly #rest: AsyncIterator<Uint8Array>;
  readonly #out: SideBandWriter;

  constructor(
    access: RepositoryAccess,
    limits: PushLimits,
    repositoryId: GitRepository['repositoryId'],
    asked: PushAsked,
    stream: GitStream,
    reader: ByteReader,
  ) {
    this.#access = access;
    this.#limits = limits;
    this.#repositoryId = repositoryId;
    this.#asked = asked;
    this.#stream = stream;
    this.#rest = reader.rest();
    this.#out = new SideBandWriter((chunk) => stream.write(chunk), asked.sideBand);
  }

  async run(applyPush: ApplyPush): Promise<number> {
    const brings = this.#asked.changes.some(({ newOid }) => newOid !== undefined);
    let quarantine: Quarantine | undefined;
    try {
      let pack: StagedPack | undefined;
      try {
        if (brings) quarantine = await openQuarantine(this.#access.directory, this.#repositoryId);
        pack = quarantine === undefined ? undefined : await this.#receive(quarantine);
      } catch (error) {
        if (this.#stream.clientGone.aborted) return fatal;
        if (!(error instanceof GitFault))
          this.#access.log.error('a pack could not be received', { repositoryId: this.#repositoryId, error });
        if (this.#asked.shallow.length > 0) this.#out.progress(shallowHint);
        await this.#refuse(describeProblem(error, internalProblem));
        return 0;
      }
      for (const warning of pack?.warnings ?? []) this.#out.progress(warning);
      const results = await this.#out.keepAliveDuring(this.#apply(applyPush, pack, quarantine));
      await this.#report('ok', results);
      return 0;
    } finally {
      await quarantine?.clear();
    }
  }

  #receive(quarantine: Quarantine): Promise<StagedPack | undefined> {
    return stagePack(this.#access, this.#limits, this.#repositoryId, quarantine, this.#rest, this.#stream.clientGone);
  }

  /** Checks the refs, and lets the caller decide about those that are sound. */
  async #apply(applyPush: ApplyPush, pack: StagedPack | undefined, quarantine: Quarantine | undefined): Promise<RefResult[]> {
    const { changes, atomic, pushOptions } = this.#asked;
    const { workers, log } = this.#access;
    const reject = (reason: string): RefResult[] => changes.map(({ name }) => ({ name, status: 'rejected', reason }));
    try {
      const listed = await this.#access.catalog.listPacks(this.#repositoryId);
      const reachable = listed.filter(({ unreachableSince }) => unreachableSince === undefined);
      using located = await locatePacks(this.#access, this.#repositoryId, reachable);
      const { packs } = located;
      if (pack !== undefined && quarantine !== undefined) {
        packs.push({
          key: quarantine.packPath,
          pack: quarantine.packPath,
          index: quarantine.indexPath,
          links: quarantine.linksPath,
        });
      }
      const tips = [...new Set(changes.flatMap(({ newOid }) => newOid ?? []))];
      const found = tips.length === 0 ? [] : await workers.run('inspect', { packs, oids: tips });
      const problems = await this.#check(new Map<ObjectId, Inspection | undefined>(tips.map((oid, i) => [oid, found[i]])));
      if (problems.size > 0 && atomic)
        return changes.map(({ name }) => ({ name, status: 'rejected', reason: problems.get(name) ?? 'atomic push failure' }));

      const commands = changes.filter(({ name }) => !problems.has(name));
      const decided =
        commands.length === 0
          ? []
          : await applyPush({ commands, atomic, pushOptions, pack }, (line) => this.#out.progress(line), this.#stream.clientGone);
      const byName = new Map(decided.map((result) => [result.name, result]));
      return changes.map(({ name }) => {
        const reason = problems.get(name);
        if (reason !== undefined) return { name, status: 'rejected', reason };
        return byName.get(name) ?? { name, status: 'rejected', reason: internalProblem };
      });
    } catch (error) {
      if (error instanceof GitFault || (error instanceof AppError && error.code !== 'internal')) return reject(error.message);
      log.error('a push could not be applied', { repositoryId: this.#repositoryId, error });
      return reject(describeProblem(error, unknownProblem));
    }
  }

  /** What is wrong with each change, by name. */
  async #check(inspected: ReadonlyMap<ObjectId, Inspection | undefined>): Promise<ReadonlyMap<string, string>> {
    const { refs } = this.#access;
    const problems = new Map<string, string>();
    const named = this.#asked.changes.filter(({ name }) => {
      const problem = nameProblem(name);
      if (problem !== undefined) problems.set(name, problem);
      return problem === undefined;
    });
    const creates = named.some(({ oldOid, newOid }) => oldOid === undefined && newOid !== undefined);
    const current = await refs.readNeighbours(this.#repositoryId, named);
    const room = creates ? this.#limits.repositoryRefs - (await refs.countRefs(this.#repositoryId)) : 0;
    return new Map([...problems, ...checkChanges(named, { current, inspected, room })]);
  }

  async #refuse(problem: string): Promise<void> {
    await this.#report(
      problem,
      this.#asked.changes.map(({ name }) => ({ name, status: 'rejected', reason: 'unpacker error' })),
    );
    await drain(this.#rest, this.#limits.packBytes, this.#stream.clientGone);
  }

  async #report(unpack: string, results: readonly RefResult[]): Promise<void> {
    if (this.#stream.clientGone.aborted) return;
    const lines = results.map((result) => ({ name: result.name, reason: result.status === 'ok' ? undefined : result.reason }));
    try {
      if (this.#asked.reportStatus) await this.#out.data(encodeReport(unpack, lines));
      if (this.#asked.sideBand) await this.#out.bare(flushPacket);
    } catch (error) {
      // What was decided stands, whether or not the client still hears of it.
      this.#access.log.debug('a client left before its report', { error });
    }
  }
}

/** A client that is still sending reads our answer only if it is not stopped by a pipe that has closed. */
async function drain(rest: AsyncIterator<Uint8Array>, mostBytes: number, clientGone: AbortSignal): Promise<void> {
  const deadline = AbortSignal.any([AbortSignal.timeout(30_000), clientGone]);
  const over = new Promise<'over'>((resolve) => deadline.addEventListener('abort', () => resolve('over'), { once: true }));
  for (let drained = 0; drained < mostBytes; ) {
    const next = await Promise.race([rest.next().catch(() => 'over' as const), over]);
    if (next === 'over' || next.done === true) return;
    drained += next.value.length;
  }
}

/** What the client may know of why its push was not taken; `otherwise` when that is nobody's business. */
function describeProblem(error: unknown, otherwise: string): string {
  if (error instanceof GitFault || error instanceof PackStorageError) return error.message;
  // From a worker thread only the message comes.
  if (error instanceof Error && /^(ENOSPC|EDQUOT)\b/.test(error.message)) return diskProblem;
  return otherwise;
}
