import { ByteReader } from '#shared/byte-reader.ts';
import { AppError } from '#shared/errors.ts';
import { GitFault } from '#shared/git/git-fault.ts';
import type { ApplyPush, GitRepository, GitStream, PushOutcome, RefResult, StagedPack } from '#shared/git/git-storage.ts';
import type { Inspection } from '#shared/git/object-graph/inspect-objects.ts';
import { PackStorageError } from '#shared/git/packs/files/pack-files.ts';
import { openQuarantine, type Quarantine } from '#shared/git/packs/files/quarantine.ts';
import type { PackLimits } from '#shared/git/packs/intake/pack-scanner.ts';
import { encodePacket, flushPacket } from '#shared/git/protocol/pkt-line.ts';
import { dataBand, encodeBand } from '#shared/git/protocol/side-band.ts';
import { SideBandWriter } from '#shared/git/protocol/side-band-writer.ts';
import { checkChanges, nameProblem } from '#shared/git/receive-pack/check-changes.ts';
import {
  advertiseRefs,
  encodeReportStatus,
  InvalidReceivePackRequest,
  type ReceivePackRequest,
  readReceivePackRequest,
} from '#shared/git/receive-pack/push-protocol.ts';
import { stagePack } from '#shared/git/receive-pack/stage-pack.ts';
import { locatePacks } from '#shared/git/repository/locate-packs.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { ObjectId } from '#shared/ids.ts';

/** Limits of one push, and of the refs of a repository. */
export interface PushLimits extends PackLimits {
  /** Refs that a push may change. */
  refs: number;
  /** Refs that a repository may have. */
  repositoryRefs: number;
  /** Time for the pack to arrive. */
  seconds: number;
}

/** Exit status of `git receive-pack` when the client could not be served at all. */
const fatal = 128;
/** Missing objects are most likely those that a shallow clone left out. */
const shallowHint = ' !     Your clone is shallow. Get the rest with `git fetch --unshallow`, then push again.';
const internalProblem = 'internal server error; nothing was changed, try again';
const diskProblem = "the server's disk is full; nothing was changed, contact the operator";
/** For failures while refs move: some of them may have moved. */
const unknownProblem = 'internal server error; refs may have changed, push again to complete';

/** See `GitServer.receivePack`. */
export async function receivePack(
  access: RepositoryAccess,
  limits: PushLimits,
  { repositoryId }: GitRepository,
  stream: GitStream,
  applyPush: ApplyPush,
): Promise<PushOutcome> {
  const reader = new ByteReader(stream.input);
  let request: ReceivePackRequest | undefined;
  try {
    if (stream.step !== 'serve') await advertiseRefs(await access.refs.listRefs(repositoryId), (bytes) => stream.write(bytes));
    if (stream.step === 'advertise') return { exitStatus: 0, requestedRefs: 0 };
    request = await readReceivePackRequest(reader, limits.refs);
  } catch (error) {
    if (stream.clientGone.aborted) return { exitStatus: fatal, requestedRefs: 0 };
    if (!(error instanceof GitFault)) throw error;
    const answer = encodePacket(`ERR ${error.message}\n`);
    const { sideBand, packFollows } =
      error instanceof InvalidReceivePackRequest ? error : { sideBand: false, packFollows: false };
    await stream.write(sideBand ? encodeBand(dataBand, answer) : answer).catch(() => undefined);
    if (packFollows) await drain(reader.rest(), limits.packBytes, stream.clientGone);
    return { exitStatus: fatal, requestedRefs: 0 };
  }
  if (request === undefined) return { exitStatus: 0, requestedRefs: 0 };
  const push = new Push(access, { limits, repositoryId, request, stream, pack: reader.rest() });
  return { exitStatus: await push.run(applyPush), requestedRefs: request.changes.length };
}

interface PushOptions {
  limits: PushLimits;
  repositoryId: GitRepository['repositoryId'];
  request: ReceivePackRequest;
  stream: GitStream;
  /** What the client sends after its request. */
  pack: AsyncIterator<Uint8Array>;
}

/** One push, from its pack to its report. */
class Push {
  readonly #access: RepositoryAccess;
  readonly #limits: PushLimits;
  readonly #repositoryId: GitRepository['repositoryId'];
  readonly #request: ReceivePackRequest;
  readonly #stream: GitStream;
  readonly #pack: AsyncIterator<Uint8Array>;
  readonly #out: SideBandWriter;

  constructor(access: RepositoryAccess, { limits, repositoryId, request, stream, pack }: PushOptions) {
    this.#access = access;
    this.#limits = limits;
    this.#repositoryId = repositoryId;
    this.#request = request;
    this.#stream = stream;
    this.#pack = pack;
    this.#out = new SideBandWriter((chunk) => stream.write(chunk), request.sideBand);
  }

  /** Returns the exit status. */
  async run(applyPush: ApplyPush): Promise<number> {
    const needsPack = this.#request.changes.some(({ newOid }) => newOid !== undefined);
    let quarantine: Quarantine | undefined;
    try {
      let pack: StagedPack | undefined;
      try {
        if (needsPack) quarantine = await openQuarantine(this.#access.directory, this.#repositoryId);
        pack = quarantine === undefined ? undefined : await this.#receive(quarantine);
      } catch (error) {
        if (this.#stream.clientGone.aborted) return fatal;
        if (!(error instanceof GitFault))
          this.#access.log.error('A pack could not be received.', { repositoryId: this.#repositoryId, error });
        if (this.#request.shallow.length > 0) this.#out.progress(shallowHint);
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
    return stagePack(this.#access, {
      limits: this.#limits,
      repositoryId: this.#repositoryId,
      quarantine,
      input: this.#pack,
      clientGone: this.#stream.clientGone,
    });
  }

  /** Rejects changes that fail the checks, and passes the others to `applyPush`. */
  async #apply(applyPush: ApplyPush, pack: StagedPack | undefined, quarantine: Quarantine | undefined): Promise<RefResult[]> {
    const { changes, atomic, pushOptions } = this.#request;
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
      log.error('A push could not be applied.', { repositoryId: this.#repositoryId, error });
      return reject(describeProblem(error, unknownProblem));
    }
  }

  /** The reasons to reject changes, by ref name. */
  async #check(inspected: ReadonlyMap<ObjectId, Inspection | undefined>): Promise<ReadonlyMap<string, string>> {
    const { refs } = this.#access;
    const problems = new Map<string, string>();
    const named = this.#request.changes.filter(({ name }) => {
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
      this.#request.changes.map(({ name }) => ({ name, status: 'rejected', reason: 'unpacker error' })),
    );
    await drain(this.#pack, this.#limits.packBytes, this.#stream.clientGone);
  }

  async #report(unpack: string, results: readonly RefResult[]): Promise<void> {
    if (this.#stream.clientGone.aborted) return;
    const lines = results.map((result) => ({ name: result.name, reason: result.status === 'ok' ? undefined : result.reason }));
    try {
      if (this.#request.reportStatus) await this.#out.data(encodeReportStatus(unpack, lines));
      if (this.#request.sideBand) await this.#out.bare(flushPacket);
    } catch (error) {
      // The result stands, whether or not the client receives it.
      this.#access.log.debug('A client disconnected before its report.', { error });
    }
  }
}

/** Reads and drops what the client still sends. A client that cannot write any more ends before it reads the answer. */
async function drain(input: AsyncIterator<Uint8Array>, mostBytes: number, clientGone: AbortSignal): Promise<void> {
  const deadline = AbortSignal.any([AbortSignal.timeout(30_000), clientGone]);
  const over = new Promise<'over'>((resolve) => deadline.addEventListener('abort', () => resolve('over'), { once: true }));
  for (let drained = 0; drained < mostBytes; ) {
    const next = await Promise.race([input.next().catch(() => 'over' as const), over]);
    if (next === 'over' || next.done === true) return;
    drained += next.value.length;
  }
}

/** The error's message where the client may see it, else `otherwise`. */
function describeProblem(error: unknown, otherwise: string): string {
  if (error instanceof GitFault || error instanceof PackStorageError) return error.message;
  // An error from a worker thread has only its message.
  if (error instanceof Error && /^(ENOSPC|EDQUOT)\b/.test(error.message)) return diskProblem;
  return otherwise;
}
