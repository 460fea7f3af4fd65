import type { InstanceEngine } from '../../engines/engine.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import type { Clock } from '../../support/clock.ts';
import type { Log } from '../../support/log.ts';
import type { ReconcileQueue } from '../reconcile-queue.ts';
import { recordCrash, exitedCleanly, NO_CRASHES } from './crash-backoff.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import type { WorkerRegistry } from './worker-registry.ts';
import { crashSummary } from '../crash-summary.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';

/** What a worker that is told to end has to do so. */
export const STOP_GRACE_MS = 10_000;
/** How often a worker that leaves is asked whether it is done. */
const BUSY_POLL_MS = 100;
const CRASH_LOG_LINES = 30;
const MAX_REASON_LENGTH = 500;

export interface WorkerTerminationDeps {
  registry: WorkerRegistry;
  /** Of endpoints: one whose worker ended by itself is looked at. */
  reconcileQueue: ReconcileQueue;
  queue: JobQueue;
  engines: ReadonlyMap<string, InstanceEngine>;
  /** How many requests the gateway has with a worker. */
  inFlight(endpointId: string, workerId: string): number;
  clock: Clock;
  log: Log;
}

/** How a worker came to its end. */
export interface WorkerExit {
  exitCode?: number | null;
  reason: string | null;
  /** When it ended, where that is known better than by now. */
  at?: number | undefined;
}

/** How workers leave: let go because they are not wanted any more, or ended by themselves. */
export class WorkerTermination {
  readonly #deps: WorkerTerminationDeps;
  /** Ends about which not all is done yet. */
  readonly #underWay = new Set<{ endpointId: string; workerId: string; over: Promise<void> }>();

  constructor(deps: WorkerTerminationDeps) {
    this.#deps = deps;
  }

  /**
   * Lets a worker go: no more jobs, what it waits for ends now, it finishes what it has, and
   * only then is it told to end. A job that reached it before is done before; of one that is
   * stuck with a job that was stopped, what else it has goes back.
   */
  drain(member: TrackedWorker, reason: string | null): Promise<void> {
    if (member.record.state !== 'leaving' && member.record.state !== 'ended')
      member.draining = this.#letGo(member, reason);
    return member.draining;
  }

  async #letGo(member: TrackedWorker, reason: string | null): Promise<void> {
    const { record } = member;
    const { registry, queue, engines, log } = this.#deps;
    member.record = { ...record, state: 'leaving' };
    member.drainReason = reason;
    queue.drainWorker(record.endpointId, record.id);
    registry.changes.notify(record.endpointId);
    try {
      await registry.save(member);
      while (
        registry.isTracked(member) &&
        this.#isBusy(record) &&
        !queue.cancellations.isStuck(record.endpointId, record.id)
      )
        await new Promise((resolve) => setTimeout(resolve, BUSY_POLL_MS));
      if (!registry.isTracked(member)) return;
      await engines.get(record.dataCenterId)?.stop(record.id, STOP_GRACE_MS);
      // Its engine may have told of its end by now, which is then written down as it was.
      if (registry.isTracked(member))
        await this.#track(
          member,
          this.#end(
            member,
            { reason },
            this.#isBusy(record) ? () => this.#loseJobs(record, reason) : undefined,
          ),
        );
    } catch (error) {
      log.warn({ err: error, workerId: record.id }, 'a worker could not be ended; trying again');
      member.record = { ...member.record, state: record.state };
    }
  }

  /** A worker ended by itself. Where it was not told to, that is a mishap, and the next one waits a little longer. */
  handleExit(member: TrackedWorker, ending: WorkerExit & { reason: string }): Promise<void> {
    return this.#track(member, this.#ended(member, ending));
  }

  async #ended(
    member: TrackedWorker,
    { exitCode = null, reason, at }: WorkerExit & { reason: string },
  ): Promise<void> {
    const { record } = member;
    if (record.endedAt !== null) return;
    const { registry, reconcileQueue, queue, clock } = this.#deps;
    const expected =
      record.state === 'leaving' ||
      exitedCleanly({
        exitCode,
        readyAt: record.readyAt,
        worked: this.#hasWorked(member),
        at: at ?? clock.now(),
      });
    // What its own check found says more than the last line of its log.
    const lastLine = expected
      ? ''
      : (queue.heartbeats.statusOf(record.endpointId, record.id)?.unhealthy ??
        (await this.#lastLine(record)));
    const told = lastLine === '' ? reason : `${reason}: ${lastLine}`;
    await this.#end(member, { exitCode, reason: expected ? member.drainReason : told, at }, () =>
      this.#loseJobs(record, (expected ? member.drainReason : null) ?? told),
    );
    const fleet = registry.find(record.endpointId);
    if (fleet !== undefined)
      fleet.crashes = expected
        ? NO_CRASHES
        : recordCrash(fleet.crashes, {
            lastLine: lastLine === '' ? reason : lastLine,
            ran: member.runningSince !== null,
            now: clock.now(),
          });
    reconcileQueue.enqueue(record.endpointId);
  }

  /** It is over: its instance is cleared away, and what is left of it is its record and its log. */
  terminate(member: TrackedWorker, ending: WorkerExit): Promise<void> {
    return this.#track(member, this.#end(member, ending));
  }

  /** A worker is gone a moment before all is done about that. Resolves when it is: for one worker, for all of an endpoint, or for all that there are. */
  async waitUntilDone(endpointId?: string, workerId?: string): Promise<void> {
    const isMeant = (one: { endpointId: string; workerId: string }): boolean =>
      one.endpointId === (endpointId ?? one.endpointId) && one.workerId === (workerId ?? one.workerId);
    await Promise.allSettled([...this.#underWay].filter(isMeant).map(({ over }) => over));
  }

  #track({ record: { endpointId, id } }: TrackedWorker, over: Promise<void>): Promise<void> {
    const end = { endpointId, workerId: id, over };
    this.#underWay.add(end);
    return over.finally(() => this.#underWay.delete(end));
  }

  /** `before`: what is to be done before all that is known of it here is forgotten. */
  async #end(
    member: TrackedWorker,
    { exitCode = null, reason, at = this.#deps.clock.now() }: WorkerExit,
    before?: () => Promise<void>,
  ): Promise<void> {
    const { registry, queue, engines } = this.#deps;
    const { id, endpointId, dataCenterId } = member.record;
    member.record = { ...member.record, state: 'ended', endedAt: at, exitCode, reason };
    registry.removeWorker(member);
    await before?.();
    queue.heartbeats.removeWorker(endpointId, id);
    await engines.get(dataCenterId)?.remove(id);
    await registry.save(member);
    registry.changes.notify(endpointId);
  }

  async #loseJobs({ endpointId, id }: Worker, reason: string | null): Promise<void> {
    await this.#deps.queue.reaper.workerGone(
      endpointId,
      id,
      `the worker that ran the job ended${reason === null ? '' : `: ${reason}`}`,
    );
  }

  #hasWorked({ served, record: { endpointId, id } }: TrackedWorker): boolean {
    return served || this.#deps.queue.heartbeats.statusOf(endpointId, id)?.worked === true;
  }

  #isBusy({ endpointId, id }: Worker): boolean {
    const { queue, inFlight } = this.#deps;
    return (queue.heartbeats.statusOf(endpointId, id)?.busy ?? 0) > 0 || inFlight(endpointId, id) > 0;
  }

  async #lastLine({ id, dataCenterId }: Worker): Promise<string> {
    const lines: string[] = [];
    const engine = this.#deps.engines.get(dataCenterId);
    if (engine === undefined) return '';
    for await (const { line } of engine.logs(id, { tail: CRASH_LOG_LINES, source: 'container' }))
      lines.push(line);
    return crashSummary(lines).slice(0, MAX_REASON_LENGTH);
  }
}
