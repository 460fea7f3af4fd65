import { KEEP_LOGS_MS } from '../engines/engine.ts';
import type { InstanceEngine } from '../engines/engine.ts';
import type { LogLine } from '../engines/logs/log-line.ts';
import type { JobQueue } from '../jobs/queue.ts';
import type { FleetStore } from '../store/fleet.ts';
import type { Job } from '../store/job-records.ts';
import type { Endpoint } from '../store/records.ts';
import type { Clock } from '../support/clock.ts';
import type { Ids } from '../support/ids.ts';
import type { Log } from '../support/log.ts';
import { Rounds } from '../support/rounds.ts';
import { BalancedHealth } from './balanced-health.ts';
import type { Health } from './balanced-health.ts';
import { BalancedPool } from './balanced-pool.ts';
import { Connections } from './connections.ts';
import { isLooping, nextStartAt } from './crashes.ts';
import { Departures, STOP_GRACE_MS } from './departures.ts';
import { EarlyLooks } from './early-looks.ts';
import { EndpointFleet } from './endpoint-fleet.ts';
import { jobLines } from './job-lines.ts';
import { Launcher } from './launcher.ts';
import { loadOf } from './load.ts';
import { isPresent } from './member.ts';
import type { Member } from './member.ts';
import { place, reserve } from './placement.ts';
import type { Provisions } from './provisions.ts';
import { QueueHealth } from './queue-health.ts';
import { Removals } from './removals.ts';
import { Roster } from './roster.ts';
import { scale } from './scaler.ts';
import { Sites } from './sites.ts';
import { startLimit } from './start-limit.ts';

const TICK_MS = 500;
/** What a handler prints last is read a little after its result. */
const LOG_SLACK_MS = 1_000;
/** What is under way when the server stops has this long to come to its end. */
const CLOSE_WITHIN_MS = 2_000;
const FORGET_EVERY_MS = 10 * 60_000;

/** What has to be known of an endpoint to ask for its workers. */
export type EndpointIdentity = Pick<Endpoint, 'id' | 'type'>;

export interface FleetParts extends Provisions {
  store: FleetStore;
  queue: JobQueue;
  /** By data center. Others may come, and are connected then. */
  engines: ReadonlyMap<string, InstanceEngine>;
  endpoint(id: string): Promise<Endpoint | undefined>;
  /** Asks a load balanced worker how it is. */
  probe(host: string, port: number, path: string): Promise<Health>;
  /** How many requests the gateway has with a load balanced worker. */
  inFlight(endpointId: string, workerId: string): number;
  clock: Clock;
  ids: Ids;
  log: Log;
}

/**
 * Makes what is wanted into what is: looks at each endpoint that needs it, asks the scaler how
 * many workers there should be, and starts or ends some. Every step is written down before
 * it is taken and can be taken twice, so a restart goes on where the last one stopped, with
 * the workers that are there.
 */
export class Fleet {
  /** What the gateway asks. */
  readonly pool: BalancedPool;
  readonly #parts: FleetParts;
  readonly #roster: Roster;
  readonly #rounds: Rounds;
  readonly #earlyLooks: EarlyLooks;
  readonly #departures: Departures;
  readonly #removals: Removals;
  readonly #connections: Connections;
  readonly #sites: Sites;
  readonly #launcher: Launcher;
  readonly #queueHealth: QueueHealth;
  readonly #balancedHealth: BalancedHealth;
  #timer: NodeJS.Timeout | undefined;
  #forgotAt = 0;
  #closed = false;

  constructor(parts: FleetParts) {
    const { store, log } = parts;
    const roster = new Roster(store, log);
    const rounds = new Rounds({
      look: (endpointId) => this.#look(endpointId),
      may: (endpointId) => this.#connections.areOpen && !this.#removals.isUnderWay(endpointId),
      onError: (error, endpointId) => {
        if (!this.#closed)
          log.error({ err: error, endpointId }, 'an endpoint could not be looked after; trying again');
      },
    });
    const departures = new Departures({ ...parts, roster, rounds });
    const removals = new Removals({ ...parts, roster, rounds, departures });
    const connections = new Connections({ ...parts, roster, rounds, departures });
    const balancedHealth = new BalancedHealth({ ...parts, roster, departures });
    const sites = new Sites({ ...parts, connections, provisions: parts });
    const launcher = new Launcher({
      ...parts,
      roster,
      departures,
      removals,
      balancedHealth,
      provisions: parts,
    });
    this.#parts = parts;
    this.#roster = roster;
    this.#rounds = rounds;
    this.#earlyLooks = new EarlyLooks(roster, rounds, TICK_MS);
    this.#departures = departures;
    this.#removals = removals;
    this.#connections = connections;
    this.#sites = sites;
    this.#launcher = launcher;
    this.#queueHealth = new QueueHealth({ ...parts, roster, departures });
    this.#balancedHealth = balancedHealth;
    this.pool = new BalancedPool({ ...parts, roster, rounds, departures, removals, sites, launcher });
  }

  /** Takes up the workers that are there, removes instances that nobody knows, and begins. */
  async start(): Promise<void> {
    const { queue } = this.#parts;
    if (this.#closed) return;
    queue.onWaiting = (endpointId) => this.#earlyLooks.jobWaits(endpointId);
    queue.onRefresh = (endpointId, workerId) => this.#refresh(endpointId, workerId);
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    await this.#connections.open();
  }

  /** A data center has come: its workers are looked after from now on. */
  connect(dataCenterId: string): Promise<void> {
    return this.#connections.connect(dataCenterId);
  }

  /** Something about this endpoint changed: look at it now. */
  poke(endpointId: string): void {
    this.#rounds.ask(endpointId);
  }

  /** The endpoint is gone: its workers end now, and nothing of them stays. */
  removeEndpoint(endpointId: string): Promise<void> {
    return this.#removals.remove(endpointId);
  }

  /** The workers that live, the newest last. */
  workers(endpoint: EndpointIdentity): Member[] {
    return [...(this.#seen(endpoint)?.members.values() ?? [])];
  }

  counts(endpoint: EndpointIdentity): ReturnType<EndpointFleet['counts']> | undefined {
    return this.#seen(endpoint)?.counts();
  }

  /** Why an endpoint has no worker for its jobs. */
  reason(endpoint: Endpoint): string | undefined {
    return (this.#seen(endpoint) ?? new EndpointFleet(endpoint.id)).reason(endpoint.workersMax, () =>
      this.#sites.imageProblem(endpoint),
    );
  }

  engine(dataCenterId: string): InstanceEngine | undefined {
    return this.#parts.engines.get(dataCenterId);
  }

  /** What the worker of a job wrote while it had it; follows one that still runs. */
  async *jobLogs(
    job: Pick<Job, 'endpointId' | 'id' | 'workerId' | 'takenAt' | 'endedAt'>,
    signal: AbortSignal,
  ): AsyncGenerator<LogLine> {
    const { endpointId, id, workerId, takenAt, endedAt } = job;
    if (workerId === null || takenAt === null) return;
    const worker =
      this.#roster.member(endpointId, workerId)?.record ??
      (await this.#parts.store.findWorker(endpointId, workerId));
    const engine = worker === undefined ? undefined : this.engine(worker.dataCenterId);
    if (engine === undefined) return;
    const lines = engine.logs(workerId, { after: { ts: takenAt - 1 }, follow: endedAt === null }, signal);
    yield* jobLines(lines, id, endedAt === null ? null : endedAt + LOG_SLACK_MS);
  }

  /** Another server looks after them now. */
  pause(): void {
    clearInterval(this.#timer);
    this.#connections.shut();
    this.#parts.queue.onWaiting = () => undefined;
    this.#parts.queue.onRefresh = () => undefined;
    this.#roster.clear();
  }

  /** Lets go. Workers go on. */
  async close(): Promise<void> {
    this.#closed = true;
    this.pause();
    const late = new Promise((resolve) => setTimeout(resolve, CLOSE_WITHIN_MS).unref());
    await Promise.race([Promise.all([this.#rounds.allOver(), this.#departures.settled()]), late]);
    await Promise.all([...this.#parts.engines.values()].map((engine) => engine.close()));
  }

  #tick(): void {
    for (const endpointId of this.#roster.endpointIds()) this.poke(endpointId);
    const { store, clock, log } = this.#parts;
    const now = clock.now();
    if (now - this.#forgotAt < FORGET_EVERY_MS) return;
    this.#forgotAt = now;
    // The log of a worker is found by its record, so both are kept as long.
    store
      .forgetWorkers(now - KEEP_LOGS_MS)
      .catch((error: unknown) =>
        log.warn({ err: error }, 'workers that ended long ago could not be forgotten'),
      );
  }

  /** A handler asked that its worker be replaced. */
  #refresh(endpointId: string, workerId: string): void {
    const member = this.#roster.member(endpointId, workerId);
    if (member !== undefined) void this.#departures.dismiss(member, null);
  }

  /** With what was heard of the workers of a queue since the last look: whoever asks sees it at once. Of others the queue hears nothing that would tell how they are. */
  #seen({ id, type }: EndpointIdentity): EndpointFleet | undefined {
    const now = this.#parts.clock.now();
    if (type === 'QUEUE') for (const member of this.#roster.members(id)) this.#queueHealth.hear(member, now);
    return this.#roster.find(id);
  }

  async #look(endpointId: string): Promise<void> {
    const { queue, clock } = this.#parts;
    const endpoint = await this.#parts.endpoint(endpointId);
    if (endpoint === undefined) return this.#removals.sweep(endpointId);
    const fleet = this.#roster.fleetOf(endpointId);
    const now = clock.now();
    await Promise.all([...fleet.members.values()].map((member) => this.#check(member, endpoint, now)));
    this.#dismiss(fleet, ({ record }) => record.version < endpoint.version);
    const load = await loadOf(endpoint, fleet.demand, queue, now);
    if (this.#removals.isUnderWay(endpointId)) return;
    const { start, stop } = scale(endpoint, load, fleet.scaled(), now);
    this.#dismiss(fleet, ({ record }) => stop.includes(record.id));
    if (start > 0) await this.#startSome(fleet, endpoint, start, now);
    else fleet.hasPlaced();
    fleet.forgiveCrashes(load.waiting, now);
    if (
      fleet.members.size === 0 &&
      load.waiting === 0 &&
      endpoint.workersMin === 0 &&
      fleet.crashes.count === 0
    )
      this.#roster.forget(endpointId);
  }

  /** What became of a worker since the last look. */
  async #check(member: Member, endpoint: Endpoint, now: number): Promise<void> {
    if (endpoint.type === 'LOAD_BALANCER') await this.#balancedHealth.check(member, endpoint, now);
    else await this.#queueHealth.check(member, now);
    const limit = startLimit(endpoint.env);
    const { record, runsSince } = member;
    // While the image is being fetched, it may take as long as it takes.
    if (record.state !== 'starting' || runsSince === null || now - runsSince <= limit) return;
    await this.#departures.ended(member, { reason: `it was not ready within ${Math.round(limit / 1000)} s` });
    await this.engine(record.dataCenterId)?.remove(record.id, STOP_GRACE_MS);
  }

  #dismiss({ members }: EndpointFleet, isUnwanted: (member: Member) => boolean): void {
    for (const member of members.values()) {
      if (isPresent(member) && isUnwanted(member)) void this.#departures.dismiss(member, null);
    }
  }

  async #startSome(fleet: EndpointFleet, endpoint: Endpoint, wanted: number, now: number): Promise<void> {
    if (now < nextStartAt(fleet.crashes)) return;
    // A crash loop is tried one at a time.
    const count = isLooping(fleet.crashes) ? 1 : wanted;
    const sites = await this.#sites.for(endpoint);
    if (this.#removals.isUnderWay(endpoint.id)) return;
    for (let started = 0; started < count; started += 1) {
      const placement = place(endpoint, sites);
      if ('refused' in placement) return fleet.couldNotPlace(wanted - started, placement.refused);
      reserve(sites, endpoint, placement.place);
      this.#launcher.launch(endpoint, placement.place);
    }
    fleet.hasPlaced();
  }
}
