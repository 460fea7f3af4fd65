import { type InstanceEngine, NO_CAPACITY } from '../engines/engine.ts';
import type { Instance, InstanceEvent, InstanceHandle, InstanceSpec } from '../engines/instance.ts';
import type { LogLine } from '../engines/logs/log-line.ts';
import type { JobQueue } from '../jobs/queue.ts';
import { foreignImage } from '../resources/images/names.ts';
import type { FleetStore, Worker } from '../store/fleet.ts';
import type { Job } from '../store/job-records.ts';
import type { Endpoint } from '../store/records.ts';
import { Changes } from '../support/changes.ts';
import type { Clock } from '../support/clock.ts';
import { BerthError } from '../support/errors.ts';
import type { Ids } from '../support/ids.ts';
import type { Log } from '../support/log.ts';
import { Rounds } from '../support/rounds.ts';
import { BalancedHealth } from './balanced-health.ts';
import type { Health } from './balanced-health.ts';
import { afterCrash, isLooping, nextStartAt, NO_CRASHES } from './crashes.ts';
import { EndpointFleet } from './endpoint-fleet.ts';
import type { Member } from './endpoint-fleet.ts';
import { jobLines } from './job-lines.ts';
import { place, reserve } from './placement.ts';
import type { Place, Site } from './placement.ts';
import { scale } from './scaler.ts';
import { tellingLine } from './telling-line.ts';
import { workerSpec } from './worker-spec.ts';

const TICK_MS = 500;
/** A worker that was not heard of within this time has failed to start. Its own RUNPOD_INIT_TIMEOUT (seconds) says otherwise. */
const START_WITHIN_MS = 7 * 60_000;
const STOP_GRACE_MS = 10_000;
/** How often a worker that leaves is asked whether it is done. */
const LOOK_AGAIN_MS = 100;
/** Before an engine that did not answer is asked again for its workers. */
const CONNECT_AGAIN_MS = 2_000;
/** A worker that was ready for this long tells that whatever went wrong before is over. */
const STEADY_MS = 60_000;
/** What a handler prints last is read a little after its result. */
const LOG_SLACK_MS = 1_000;
const LAST_LINES = 30;
const LONGEST_REASON = 500;
const KEEP_ENDED_MS = 60 * 60_000;
const FORGET_EVERY_MS = 10 * 60_000;

/** Between the first two looks at an endpoint without workers to which jobs keep coming. */
const FIRST_LOOK_PAUSE_MS = 10;

export interface FleetParts {
  store: FleetStore;
  queue: JobQueue;
  /** By data center. Others may come, and are connected then. */
  engines: ReadonlyMap<string, InstanceEngine>;
  endpoint(id: string): Promise<Endpoint | undefined>;
  /** The environment with its secrets filled in. */
  resolveEnv(accountId: string, env: Record<string, string>): Promise<Record<string, string>>;
  /** What an image is pulled with: saved credentials that are named, or what the account has for this image. */
  credentials(accountId: string, registryId: string | null, image: string): Promise<{ username: string; password: string } | undefined>;
  /** Where a network volume of the endpoint lies in a data center; undefined where it has none there. */
  volume(endpoint: Endpoint, dataCenterId: string): Promise<{ id: string; folder: string } | undefined>;
  /** The file with the code of an endpoint whose image comes without; undefined where it has none. */
  artifact(endpoint: Endpoint): Promise<string | undefined>;
  tokenOf(endpointId: string, workerId: string): string;
  /** Where workers of a data center reach this server. */
  workerUrl(dataCenterId: string): Promise<string>;
  /** Asks a load balanced worker how it is. */
  probe(host: string, port: number, path: string): Promise<Health>;
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
  readonly #parts: FleetParts;
  readonly #health: BalancedHealth;
  readonly #fleets = new Map<string, EndpointFleet>();
  /** Endpoints that were looked at because a job waits, and whether another came since. */
  readonly #justLooked = new Map<string, { again: boolean }>();
  readonly #rounds: Rounds;
  /** Endpoints that are being cleared away: nothing is started for them any more. */
  readonly #removing = new Set<string>();
  /** Data centers whose workers are known. Elsewhere nothing is started: what is wanted may already be there. */
  readonly #connected = new Set<string>();
  /** What is under way, or done, to know them. Anew each time that this server begins to look after workers. */
  #connections = new Map<string, Promise<void>>();
  readonly #changes = new Changes();
  readonly #unwatch: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** How many requests the gateway has with a load balanced worker. */
  inFlight: (endpointId: string, workerId: string) => number = () => 0;
  #forgotAt = 0;
  #closed = false;
  #leading = false;

  constructor(parts: FleetParts) {
    this.#parts = parts;
    this.#rounds = new Rounds({
      look: (endpointId) => this.#look(endpointId),
      may: (endpointId) => this.#leading && !this.#removing.has(endpointId),
      onError: (error, endpointId) => parts.log.error({ err: error, endpointId }, 'an endpoint could not be looked after; trying again'),
    });
    this.#health = new BalancedHealth({
      address: async (worker, port) => this.#engineOf(worker)?.address(worker.id, port),
      probe: (host, port, path) => parts.probe(host, port, path),
      inFlight: (endpointId, workerId) => this.inFlight(endpointId, workerId),
      isLeading: () => this.#leading,
      onReady: (member, now) => this.#becomesReady(member, now),
      onFailing: (member, reason) => void this.#dismiss(member, reason),
      onChanged: (endpointId) => this.#changes.tell(endpointId),
      clock: parts.clock,
      log: parts.log,
    });
  }

  /** Takes up the workers that are there, removes instances that nobody knows, and begins. */
  async start(): Promise<void> {
    const { engines, queue } = this.#parts;
    if (this.#closed) return;
    this.#leading = true;
    queue.onWaiting = (endpointId) => this.#onWaiting(endpointId);
    queue.onRefresh = (endpointId, workerId) => this.#onRefresh(endpointId, workerId);
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    await Promise.all([...engines.keys()].map((dataCenterId) => this.connect(dataCenterId)));
  }

  /** Takes up the workers of a data center and looks after it from now on. Where its engine does not answer, it is asked again later. */
  connect(dataCenterId: string): Promise<void> {
    const engine = this.#parts.engines.get(dataCenterId);
    if (engine === undefined || !this.#leading) return Promise.resolve();
    const connecting = this.#connections.get(dataCenterId) ?? this.#connect(dataCenterId, engine, this.#connections);
    this.#connections.set(dataCenterId, connecting);
    return connecting;
  }

  async #connect(dataCenterId: string, engine: InstanceEngine, connections: Map<string, Promise<void>>): Promise<void> {
    const { store, log } = this.#parts;
    // Another server may have taken over meanwhile, and this one again.
    const isCurrent = (): boolean => this.#leading && this.#connections === connections;
    try {
      const living = await store.livingWorkers();
      await this.#adopt(dataCenterId, engine, living, isCurrent);
      if (!isCurrent()) return;
      this.#connected.add(dataCenterId);
      this.#unwatch.push(engine.watch((event) => this.#onEvent(event)));
      for (const endpointId of await store.activeEndpoints()) this.poke(endpointId);
    } catch (error) {
      if (!isCurrent()) return;
      log.warn({ err: error, dataCenterId }, 'the workers of a data center cannot be looked after; trying again');
      connections.delete(dataCenterId);
      setTimeout(() => void (isCurrent() && this.connect(dataCenterId)), CONNECT_AGAIN_MS).unref();
    }
  }

  /** Something about this endpoint changed: look at it now. */
  poke(endpointId: string): void {
    this.#rounds.ask(endpointId);
  }

  /** The endpoint is gone: its workers end now, and nothing of them stays. */
  async removeEndpoint(endpointId: string): Promise<void> {
    if (this.#removing.has(endpointId)) return;
    this.#removing.add(endpointId);
    try {
      await this.#rounds.over(endpointId);
      await this.#clear(endpointId);
    } finally {
      this.#removing.delete(endpointId);
    }
  }

  /** The workers that live, the newest last. */
  workers(endpointId: string): Member[] {
    return [...(this.#seen(endpointId)?.members.values() ?? [])];
  }

  counts(endpointId: string): ReturnType<EndpointFleet['counts']> | undefined {
    return this.#seen(endpointId)?.counts();
  }

  /** Why an endpoint has no worker for its jobs. */
  reason(endpointId: string, workersMax: number): string | undefined {
    return (this.#seen(endpointId) ?? new EndpointFleet(endpointId)).reason(workersMax);
  }

  engine(dataCenterId: string): InstanceEngine | undefined {
    return this.#parts.engines.get(dataCenterId);
  }

  /** What the worker of a job wrote while it had it; follows one that still runs. */
  async *jobLogs(job: Pick<Job, 'endpointId' | 'id' | 'workerId' | 'takenAt' | 'endedAt'>, signal: AbortSignal): AsyncGenerator<LogLine> {
    const { endpointId, id, workerId, takenAt, endedAt } = job;
    if (workerId === null || takenAt === null) return;
    const worker = this.#fleets.get(endpointId)?.members.get(workerId)?.record ?? (await this.#parts.store.findWorker(endpointId, workerId));
    const engine = worker === undefined ? undefined : this.#engineOf(worker);
    if (engine === undefined) return;
    const lines = engine.logs(workerId, { after: { ts: takenAt - 1 }, follow: endedAt === null }, signal);
    yield* jobLines(lines, id, endedAt === null ? null : endedAt + LOG_SLACK_MS);
  }

  // What the gateway asks.

  ready(endpointId: string): { id: string; host: string; port: number }[] {
    return [...(this.#fleets.get(endpointId)?.members.values() ?? [])].flatMap(({ record, address, unhealthy }) => (record.state === 'ready' && address !== undefined && unhealthy === null ? [{ id: record.id, ...address }] : []));
  }

  /** Whether a worker that takes no requests yet may come to. */
  exists(endpointId: string, workerId: string): boolean {
    const state = this.#fleets.get(endpointId)?.members.get(workerId)?.record.state;
    return state === 'starting' || state === 'ready';
  }

  /** Starts a worker again, under its id, that left because it had nothing to do. False where it belongs to the past, or there is no room for it. */
  async resume(endpointId: string, workerId: string): Promise<boolean> {
    const endpoint = await this.#parts.endpoint(endpointId);
    const left = await this.#parts.store.findWorker(endpointId, workerId);
    if (!this.#leading || endpoint === undefined || left === undefined || left.endedAt === null || left.version !== endpoint.version) return false;
    const sites = await this.#sites(endpoint);
    const fleet = this.#fleetOf(endpointId);
    if (this.#removing.has(endpointId) || this.exists(endpointId, workerId)) return this.exists(endpointId, workerId);
    const placement = place(endpoint, sites);
    if (fleet.members.has(workerId) || fleet.members.size >= endpoint.workersMax || 'refused' in placement) return false;
    this.#begin(fleet, endpoint, placement.place, workerId);
    return true;
  }

  demand(endpointId: string, requests: number): void {
    const fleet = this.#fleetOf(endpointId);
    const before = fleet.demand;
    fleet.demand = requests;
    if (requests > 0 && (before === 0 || !fleet.isManned)) this.poke(endpointId);
  }

  /** A worker was given a request, or is done with one: its idle time starts anew. */
  touched(endpointId: string, workerId: string): void {
    const member = this.#fleets.get(endpointId)?.members.get(workerId);
    if (member !== undefined) member.idleSince = this.#parts.clock.now();
  }

  waitForChange(endpointId: string, milliseconds: number, signal: AbortSignal): Promise<void> {
    return this.#changes.next(endpointId, milliseconds, signal).changed;
  }

  /** Another server looks after them now. */
  pause(): void {
    clearInterval(this.#timer);
    for (const unwatch of this.#unwatch.splice(0)) unwatch();
    this.#parts.queue.onWaiting = () => undefined;
    this.#parts.queue.onRefresh = () => undefined;
    this.#fleets.clear();
    this.#connected.clear();
    this.#connections = new Map();
    this.#leading = false;
  }

  /** Lets go. Workers go on. */
  async close(): Promise<void> {
    this.#closed = true;
    this.pause();
    await Promise.all([...this.#parts.engines.values()].map((engine) => engine.close()));
  }

  // How it works.

  #tick(): void {
    for (const endpointId of this.#fleets.keys()) this.poke(endpointId);
    const now = this.#parts.clock.now();
    if (now - this.#forgotAt < FORGET_EVERY_MS) return;
    this.#forgotAt = now;
    this.#parts.store.forgetWorkers(now - KEEP_ENDED_MS).catch((error: unknown) => this.#parts.log.warn({ err: error }, 'workers that ended long ago could not be forgotten'));
  }

  #fleetOf(endpointId: string): EndpointFleet {
    let fleet = this.#fleets.get(endpointId);
    if (fleet === undefined) {
      fleet = new EndpointFleet(endpointId);
      this.#fleets.set(endpointId, fleet);
    }
    return fleet;
  }

  #engineOf({ dataCenterId }: Worker): InstanceEngine | undefined {
    return this.#parts.engines.get(dataCenterId);
  }

  /**
   * With no worker yet, or none that stays, a job that waits is reason to look at once; otherwise
   * the next tick is soon enough. Those that come right after it are looked at together.
   */
  #onWaiting(endpointId: string): void {
    if (this.#fleets.get(endpointId)?.isManned === true) return;
    const just = this.#justLooked.get(endpointId);
    if (just !== undefined) {
      just.again = true;
      return;
    }
    this.poke(endpointId);
    this.#pauseLooks(endpointId, FIRST_LOOK_PAUSE_MS);
  }

  /** While jobs keep coming and no worker does, the looks become rarer. */
  #pauseLooks(endpointId: string, milliseconds: number): void {
    const pause = { again: false };
    this.#justLooked.set(endpointId, pause);
    setTimeout(() => {
      this.#justLooked.delete(endpointId);
      if (!pause.again || this.#fleets.get(endpointId)?.isManned === true) return;
      this.poke(endpointId);
      this.#pauseLooks(endpointId, Math.min(2 * milliseconds, TICK_MS));
    }, milliseconds).unref();
  }

  #onRefresh(endpointId: string, workerId: string): void {
    const member = this.#fleets.get(endpointId)?.members.get(workerId);
    if (member !== undefined) void this.#dismiss(member, null);
  }

  async #look(endpointId: string): Promise<void> {
    const { queue, clock } = this.#parts;
    const endpoint = await this.#parts.endpoint(endpointId);
    if (endpoint === undefined) return this.#sweep(endpointId);
    const fleet = this.#fleetOf(endpointId);
    const now = clock.now();
    await this.#watchMembers(fleet, endpoint, now);
    for (const member of fleet.members.values()) {
      const { state, version } = member.record;
      if ((state === 'ready' || state === 'starting') && version < endpoint.version) void this.#dismiss(member, null);
    }
    const load = endpoint.type === 'QUEUE'
      ? { ...(await queue.waiting(endpointId, now - endpoint.scalerValue * 1000, countLimit(endpoint))), inProgress: (await queue.counts(endpointId)).inProgress }
      : { waiting: fleet.demand, late: 0, inProgress: 0 };
    if (this.#removing.has(endpointId)) return;
    const { start, stop } = scale(endpoint, load, fleet.scaled(), now);
    for (const id of stop) {
      const member = fleet.members.get(id);
      if (member !== undefined) void this.#dismiss(member, null);
    }
    if (start > 0) await this.#startSome(fleet, endpoint, start, now);
    else Object.assign(fleet, { throttled: 0, refused: undefined });
    if (fleet.crashes.count > 0 && isOver(fleet, load.waiting, now)) fleet.crashes = NO_CRASHES;
    if (fleet.members.size === 0 && load.waiting === 0 && endpoint.workersMin === 0 && fleet.crashes.count === 0) this.#fleets.delete(endpointId);
  }

  /** An endpoint that was removed, and something of it is still here: the server ended in the middle of it, or an engine was away. */
  async #sweep(endpointId: string): Promise<void> {
    await this.#clear(endpointId);
    await this.#parts.queue.removeEndpoint(endpointId);
  }

  /** A worker whose engine does not answer is tried again with the next tick. */
  async #clear(endpointId: string): Promise<void> {
    const { store, log } = this.#parts;
    const fleet = this.#fleets.get(endpointId);
    await Promise.all([...(fleet?.members.values() ?? [])].map(async (member) => {
      const { id } = member.record;
      try {
        // What is under way may have got past the point where it can be called back.
        await this.#engineOf(member.record)?.remove(id, 0);
        await member.launching;
        await this.#engineOf(member.record)?.remove(id, 0);
        fleet?.members.delete(id);
      } catch (error) {
        log.warn({ err: error, endpointId, workerId: id }, 'a worker of an endpoint that is gone could not be removed; trying again');
      }
    }));
    if (fleet !== undefined && fleet.members.size > 0) return;
    this.#fleets.delete(endpointId);
    await store.removeEndpoint(endpointId, this.#parts.clock.now());
  }

  /** What became of each worker since the last look. */
  async #watchMembers(fleet: EndpointFleet, endpoint: Endpoint, now: number): Promise<void> {
    await Promise.all([...fleet.members.values()].map(async (member) => {
      const { record, runsSince } = member;
      if (endpoint.type === 'LOAD_BALANCER') await this.#health.check(member, endpoint, now);
      else this.#observe(member, now);
      // While the image is being fetched, it may take as long as it takes.
      if (member.record.state !== 'starting' || runsSince === null || now - runsSince <= startLimit(endpoint)) return;
      await this.#ended(fleet, member, null, `it was not ready within ${Math.round(startLimit(endpoint) / 1000)} s`);
      await this.#engineOf(record)?.remove(record.id, STOP_GRACE_MS);
    }));
  }

  /** With what was heard of the workers of a queue since the last look: whoever asks sees it at once. */
  #seen(endpointId: string): EndpointFleet | undefined {
    const fleet = this.#fleets.get(endpointId);
    const now = this.#parts.clock.now();
    for (const member of fleet?.members.values() ?? []) this.#observe(member, now);
    return fleet;
  }

  #observe(member: Member, now: number): void {
    const { endpointId, id } = member.record;
    const seen = this.#parts.queue.presence.view(endpointId, id);
    if (seen === undefined) return;
    member.unhealthy = seen.unhealthy;
    if (member.record.state === 'starting') this.#becomesReady(member, now);
    const busy = seen.busy > 0;
    if (busy) member.idleSince = null;
    else if (member.busy || member.idleSince === null) member.idleSince = now;
    member.busy = busy;
    if (!busy && this.#parts.queue.stops.isStubborn(endpointId, id)) void this.#dismiss(member, 'it went on with a job that was cancelled or had run out of time');
  }

  #becomesReady(member: Member, now: number): void {
    member.record = { ...member.record, state: 'ready', readyAt: now };
    this.#save(member.record).catch((error: unknown) => this.#parts.log.warn({ err: error, workerId: member.record.id }, 'it could not be written down that a worker is ready'));
    this.#changes.tell(member.record.endpointId);
  }

  async #startSome(fleet: EndpointFleet, endpoint: Endpoint, wanted: number, now: number): Promise<void> {
    if (now < nextStartAt(fleet.crashes)) return;
    // A crash loop is tried one at a time.
    const count = isLooping(fleet.crashes) ? 1 : wanted;
    const sites = await this.#sites(endpoint);
    if (this.#removing.has(endpoint.id)) return;
    for (let started = 0; started < count; started += 1) {
      const placement = place(endpoint, sites);
      if ('refused' in placement) return void Object.assign(fleet, { refused: placement.refused, throttled: wanted - started });
      reserve(sites, placement.place);
      this.#begin(fleet, endpoint, placement.place);
    }
    Object.assign(fleet, { refused: undefined, throttled: 0 });
  }

  #begin(fleet: EndpointFleet, endpoint: Endpoint, where: Place, id = this.#parts.ids.resource()): void {
    const { clock } = this.#parts;
    const member = fleet.add({
      id,
      accountId: endpoint.accountId,
      endpointId: endpoint.id,
      version: endpoint.version,
      dataCenterId: where.dataCenterId,
      image: endpoint.image,
      gpuTypeId: where.gpuTypeId,
      gpuCount: where.gpuCount,
      cpuFlavorId: where.gpuTypeId === null ? (endpoint.cpuFlavors[0]?.id ?? null) : null,
      vcpuCount: where.cpu,
      containerDisk: endpoint.containerDisk,
      templateId: endpoint.templateId,
      state: 'starting',
      handle: null,
      createdAt: clock.now(),
      startedAt: null,
      readyAt: null,
      endedAt: null,
      exitCode: null,
      reason: null,
    });
    member.launching = this.#launch(fleet, endpoint, member, where).catch((error: unknown) => this.#parts.log.error({ err: error }, 'a worker could not be started'));
  }

  async #launch(fleet: EndpointFleet, endpoint: Endpoint, member: Member, where: Place): Promise<void> {
    const { log, clock } = this.#parts;
    const { id } = member.record;
    try {
      // It is written down before it is there, and what it needs is gathered meanwhile.
      const [spec] = await Promise.all([this.#spec(endpoint, member, where), this.#save(member.record)]);
      if (this.#removing.has(endpoint.id)) return;
      const handle = await this.#engineOf(member.record)?.start(spec);
      if (member.record.endedAt !== null || handle === undefined || this.#removing.has(endpoint.id)) return;
      member.runsSince = clock.now();
      member.record = { ...member.record, handle: JSON.stringify(handle), startedAt: member.runsSince };
      if (endpoint.type === 'LOAD_BALANCER') this.#health.awaitReady(member, endpoint);
      await this.#save(member.record);
    } catch (error) {
      if (this.#removing.has(endpoint.id) || member.record.endedAt !== null) return;
      const message = error instanceof Error ? error.message : String(error);
      log.info({ endpointId: endpoint.id, workerId: id, reason: message }, 'a worker did not start');
      if (error instanceof BerthError && error.code === 'capacity') {
        Object.assign(fleet, { refused: message, throttled: 1 });
        return this.#end(fleet, member, null, message);
      }
      await this.#ended(fleet, member, null, message);
    }
  }

  async #spec(endpoint: Endpoint, member: Member, where: Place): Promise<InstanceSpec> {
    const { resolveEnv, credentials, volume, artifact, tokenOf, workerUrl } = this.#parts;
    const { accountId, registryId, image } = endpoint;
    const [env, url, mounted, code, registry] = await Promise.all([
      resolveEnv(accountId, endpoint.env),
      workerUrl(where.dataCenterId),
      volume(endpoint, where.dataCenterId),
      artifact(endpoint),
      credentials(accountId, registryId, image),
    ]);
    return workerSpec({ endpoint, record: member.record, where, env, url, token: tokenOf(endpoint.id, member.record.id), volume: mounted, artifact: code, registry, onProgress: (line) => (member.progress = line) });
  }

  /** Only those are asked for their capacity that could run the image. */
  async #sites(endpoint: Endpoint): Promise<Site[]> {
    const { engines, volume, log } = this.#parts;
    const foreign = foreignImage(endpoint.accountId, endpoint.image);
    const sites = await Promise.all([...engines].filter(([dataCenterId]) => this.#connected.has(dataCenterId)).map(async ([dataCenterId, engine]): Promise<Site | undefined> => {
      const imageProblem = foreign ?? engine.imageProblem(endpoint.image);
      try {
        return { dataCenterId, images: engine.abilities.images, capacity: imageProblem === undefined ? await engine.capacity() : NO_CAPACITY, imageProblem, volumeId: (await volume(endpoint, dataCenterId))?.id };
      } catch (error) {
        log.warn({ err: error, dataCenterId }, 'an engine does not answer');
        return undefined;
      }
    }));
    return sites.filter((site) => site !== undefined);
  }

  /**
   * Lets a worker go: no more jobs, what it waits for ends now, it finishes what it has, and
   * only then is it told to end. A job that reached it before is done before.
   */
  async #dismiss(member: Member, reason: string | null): Promise<void> {
    const { record } = member;
    if (record.state === 'leaving' || record.state === 'ended') return;
    const { queue, log } = this.#parts;
    member.record = { ...record, state: 'leaving' };
    queue.dismiss(record.endpointId, record.id);
    this.#changes.tell(record.endpointId);
    try {
      await this.#save(member.record);
      while (!this.#closed && member.record.endedAt === null && this.#isBusy(member)) await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
      if (this.#closed || member.record.endedAt !== null) return;
      await this.#engineOf(record)?.stop(record.id, STOP_GRACE_MS);
      await this.#end(this.#fleetOf(record.endpointId), member, null, reason);
    } catch (error) {
      log.warn({ err: error, workerId: record.id }, 'a worker could not be ended; trying again');
      member.record = { ...member.record, state: record.state };
    }
  }

  #isBusy(member: Member): boolean {
    const { endpointId, id } = member.record;
    return (this.#parts.queue.presence.view(endpointId, id)?.busy ?? 0) > 0 || this.inFlight(endpointId, id) > 0;
  }

  #onEvent({ id, status, exitCode, signal, at }: InstanceEvent): void {
    if (status !== 'exited') return;
    for (const fleet of this.#fleets.values()) {
      const member = fleet.members.get(id);
      if (member === undefined) continue;
      void this.#ended(fleet, member, exitCode, signal === null ? `it ended with code ${exitCode ?? 'unknown'}` : `it was ended by ${signal}`, at)
        .catch((error: unknown) => this.#parts.log.error({ err: error }, 'the end of a worker could not be written down'));
    }
  }

  /** A worker ended by itself. Where it was not told to, that is a mishap, and the next one waits a little longer. */
  async #ended(fleet: EndpointFleet, member: Member, exitCode: number | null, reason: string, at?: number): Promise<void> {
    const { record } = member;
    if (record.endedAt !== null) return;
    const { queue, clock } = this.#parts;
    const expected = record.state === 'leaving' || (exitCode === 0 && record.readyAt !== null);
    const lastLine = expected ? '' : await this.#lastLine(record);
    await this.#end(fleet, member, exitCode, expected ? null : lastLine === '' ? reason : `${reason}: ${lastLine}`, at);
    await queue.workerGone(record.endpointId, record.id, `the worker that ran the job ended: ${reason}${lastLine === '' ? '' : `: ${lastLine}`}`);
    if (expected) fleet.crashes = NO_CRASHES;
    else fleet.crashes = afterCrash(fleet.crashes, { lastLine: lastLine === '' ? reason : lastLine, ran: member.runsSince !== null, now: clock.now() });
    this.poke(record.endpointId);
  }

  async #end(fleet: EndpointFleet, member: Member, exitCode: number | null, reason: string | null, at = this.#parts.clock.now()): Promise<void> {
    const { record } = member;
    member.record = { ...record, state: 'ended', endedAt: at, exitCode, reason };
    fleet.members.delete(record.id);
    this.#parts.queue.presence.forget(record.endpointId, record.id);
    await this.#engineOf(record)?.remove(record.id);
    await this.#save(member.record);
    this.#changes.tell(record.endpointId);
  }

  async #lastLine(record: Worker): Promise<string> {
    const lines: string[] = [];
    const engine = this.#engineOf(record);
    if (engine === undefined) return '';
    for await (const { line } of engine.logs(record.id, { tail: LAST_LINES, source: 'container' })) lines.push(line);
    return tellingLine(lines).slice(0, LONGEST_REASON);
  }

  async #adopt(dataCenterId: string, engine: InstanceEngine, living: readonly Worker[], isCurrent: () => boolean): Promise<void> {
    const running = new Map((await engine.list()).map((instance): [string, Instance] => [instance.id, instance]));
    for (const record of living.filter((worker) => worker.dataCenterId === dataCenterId)) {
      if (!isCurrent()) return;
      const instance = running.get(record.id) ?? (record.handle === null ? undefined : await engine.adopt(JSON.parse(record.handle) as InstanceHandle));
      running.delete(record.id);
      const fleet = this.#fleetOf(record.endpointId);
      if (fleet.members.has(record.id)) continue;
      const member = fleet.add({ ...record, state: record.state === 'leaving' ? 'ready' : record.state, startedAt: record.startedAt ?? instance?.startedAt ?? null });
      member.runsSince = instance?.startedAt ?? record.createdAt;
      if (instance === undefined || instance.status === 'exited') await this.#ended(fleet, member, instance?.exitCode ?? null, 'it ended while Berth was away', instance?.endedAt ?? undefined);
      else if (record.handle === null || record.startedAt === null) await this.#save((member.record = { ...member.record, handle: JSON.stringify(instance.handle) }));
    }
    // Data centers may share an engine: what another one has is taken up there.
    const elsewhere = new Set(living.filter((worker) => worker.dataCenterId !== dataCenterId && this.#parts.engines.get(worker.dataCenterId) === engine).map(({ id }) => id));
    for (const stray of running.values()) {
      if (!isCurrent() || stray.labels['kind'] !== 'worker' || elsewhere.has(stray.id)) continue;
      this.#parts.log.warn({ dataCenterId, instance: stray.id }, 'an instance that nobody knows is removed');
      await engine.remove(stray.id, 0);
    }
  }

  async #save(record: Worker): Promise<void> {
    await this.#parts.store.saveWorker(record);
  }
}

/** Counting more jobs than could ever matter is wasted. */
function countLimit({ workersMax, scalerType, scalerValue }: Endpoint): number {
  return Math.max(1, workersMax) * (scalerType === 'REQUEST_COUNT' ? Math.ceil(scalerValue) : 1) + 1;
}

function startLimit({ env }: Endpoint): number {
  const own = Number(env['RUNPOD_INIT_TIMEOUT']);
  return Number.isFinite(own) && own > 0 ? own * 1000 : START_WITHIN_MS;
}

/** What went wrong is over when a worker has stood for a while, or when it is long ago and nobody waits. */
function isOver({ members, crashes }: EndpointFleet, waiting: number, now: number): boolean {
  if ([...members.values()].some(({ record }) => record.state === 'ready' && record.readyAt !== null && now - Math.max(record.readyAt, crashes.lastAt) > STEADY_MS)) return true;
  return waiting === 0 && members.size === 0 && now - crashes.lastAt > KEEP_ENDED_MS;
}
