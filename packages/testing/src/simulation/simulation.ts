import { newLeaseToken } from '../../../cloud/src/domain/job-ids.ts';
import type { Endpoint } from '../../../cloud/src/domain/records.ts';
import { workerShardOf } from '../../../cloud/src/domain/endpoints/worker-shards.ts';
import { usageRules } from '../../../cloud/src/metering/usage-rules.ts';
import { createStore } from '../../../cloud/src/store/open-store.ts';
import type { Store } from '../../../cloud/src/store/store.ts';
import {
  leaderLeaseName,
  shardLeaseName,
  useWorkerShards,
} from '../../../cloud/src/store/tables/worker-shards.table.ts';
import { Sealer } from '../../../cloud/src/support/crypto.ts';
import type { Log } from '../../../cloud/src/support/log.ts';
import { seededRandom } from '../safety/seeded-random.ts';
import type { SeededRandom } from '../safety/seeded-random.ts';
import { hasEnded, InvariantViolation, JobModel } from './job-model.ts';
import { GENERATION_LABEL } from '../../../cloud/src/domain/pods/pod-step.ts';
import type { InstanceSpec } from '../../../cloud/src/engines/instance.ts';
import { startSimulatedPod } from './simulated-pod.ts';
import { SimulatedPodClient } from './simulated-pod-client.ts';
import { SimulatedReceiver } from './simulated-receiver.ts';
import { WebhookLeases } from './webhook-leases.ts';
import { writesAsLeader } from './store-connection.ts';
import { SimulatedClient } from './simulated-client.ts';
import { INSTANT_DISK, SimulatedDisk } from './simulated-disk.ts';
import { createEndpoints, deleteOneEndpoint } from './simulated-endpoints.ts';
import { SimulatedEngine } from './simulated-engine.ts';
import { checkIdleState } from './idle-check.ts';
import { SimulatedFaults } from './simulated-faults.ts';
import { SimulatedNetwork } from './simulated-network.ts';
import { SimulatedServer } from './simulated-server.ts';
import { DATA_CENTER } from './simulated-world.ts';
import type { SimulatedWorld } from './simulated-world.ts';
import { SimulatedWakeups } from './simulated-wakeups.ts';
import { SimulatedWorker } from './simulated-worker.ts';
import { ACCOUNT } from './simulation-storage.ts';
import type { SimulationStorage } from './simulation-storage.ts';
import { SimulationTrace } from './simulation-trace.ts';
import { VirtualTime } from './virtual-time.ts';

/**
 * How long everything has to come to rest when the faults are over. One slow worker may have many jobs to
 * run.
 */
const REST_MS = 1_200_000;
const CHECK_INTERVAL_MS = 1_000;
/** The share of runs with shards, of those with several servers. */
const SHARDS_SHARE = Number(process.env['BERTH_SIMULATION_SHARDS'] ?? 0.4);
/** Virtual time with load and faults, by default. */
const LOAD_MS = 20_000;

export interface SimulationOptions {
  seed: number;
  database: SimulationStorage;
  /** Virtual time with load and faults. */
  milliseconds?: number;
  /** Everything that happened is in the trace. */
  traceAll?: boolean;
  /** Planted bugs: what the servers see of the store, and with which rules usage is recorded. */
  wrapStore?(store: Store): Store;
  usage?: typeof usageRules;
}

export interface SimulationResult {
  seed: number;
  violation: InvariantViolation | undefined;
  /** What happened to whatever the violation is about, and which faults there were. */
  trace: string[];
  jobs: number;
  instances: number;
  steps: number;
  servers: number;
  shards: number;
  /** Of everything that happened: two runs of a seed have the same one. */
  hash: string;
}

/** Runs one seed: the same seed gives the same run. */
export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const { seed, database } = options;
  await database.clear();
  try {
    return await new Simulation(options).run();
  } catch (error) {
    throw new Error(`seed ${seed}: the run broke off`, { cause: error });
  }
}

class Simulation {
  readonly #options: SimulationOptions;
  readonly #time: VirtualTime;
  readonly #trace: SimulationTrace;
  readonly #workers = new Map<string, SimulatedWorker>();
  readonly #exits = new Map<string, (exitCode: number) => void>();
  readonly #purged = new Set<string>();
  readonly #model: JobModel;
  readonly #world: SimulatedWorld;
  readonly #servers: SimulatedServer[];
  readonly #faults: SimulatedFaults;
  readonly #network: SimulatedNetwork;
  readonly #endpoints: Endpoint[];
  readonly #podClient: SimulatedPodClient;
  readonly #load: number;
  /** Calls of the store that may write and are not done: each may commit at any step. */
  #storeWrites = 0;
  #isDirty = false;
  #rests = false;
  #violation: InvariantViolation | undefined;

  constructor(options: SimulationOptions) {
    const { seed, database } = options;
    this.#options = options;
    this.#load = options.milliseconds ?? LOAD_MS;
    const random = (name: string): SeededRandom => seededRandom(seed, name);
    const choices = random('choices');
    this.#time = new VirtualTime(random('numbers').next);
    const time = this.#time;
    this.#trace = new SimulationTrace(() => time.now);
    const count = choices.pick([1, 1, 2, 3]) ?? 1;
    const isLocal = count === 1 && choices.chance(0.8) && database.kind === 'sqlite';
    const shards = count > 1 && !isLocal ? shardsOf(seed) : 1;
    const disk = new SimulatedDisk(time, random('disk'), (isLimited) => database.limitSize(isLimited));
    const opened = database.open(isLocal ? disk : INSTANT_DISK);
    const jobs = opened.jobs();
    let deliveries = 0;
    const usage = (options.usage ?? usageRules)(PRICES);
    this.#network = new SimulatedNetwork(time, random('network'));
    this.#endpoints = createEndpoints(choices);
    this.#model = new JobModel({
      takeJournal: () => database.takeJournal(),
      now: () => time.now,
      lastFaultAt: () => this.#faults.lastAt,
      longestDelay: () => this.#faults.longestDelay,
      worker: (id) => this.#workers.get(id),
      wasPurged: (endpointId) => this.#purged.has(endpointId),
      trace: (line) => this.#trace.add(line),
    });
    this.#world = {
      time,
      random: random('store'),
      database: opened,
      openStore: (elections, wakeups) => {
        const store = createStore(
          {
            ...opened,
            jobs: () => jobs,
            leaderElection: () => elections.leader,
            shardElection: () => elections.shards ?? fail(),
          },
          SEALER,
          wakeups,
          usage,
          shards,
        );
        return options.wrapStore?.(store) ?? store;
      },
      storeFaults: { downUntil: 0, failureRate: 0, lateRate: 0 },
      isLocal,
      shards,
      engine: new SimulatedEngine({
        time,
        random: random('engine'),
        run: ({ id, labels }, exit) =>
          labels['endpoint'] === undefined
            ? startSimulatedPod(time, random(`${id} ${time.now}`), exit)
            : this.#startWorker(id, labels['endpoint'], exit),
        onEndAsked: (spec) => this.#checkPodMayEnd(spec),
        trace: (line) => this.#trace.add(line),
      }),
      wakeups: new SimulatedWakeups(time, random('wakeups')),
      receiver: new SimulatedReceiver(time, random('receiver')),
      webhookLeases: new WebhookLeases({
        now: () => time.now,
        onViolation: (violation) => void (this.#violation ??= violation),
      }),
      endpoints: new Map(this.#endpoints.map((endpoint) => [endpoint.id, endpoint])),
      databaseClock: { ahead: 0, shared: undefined },
      ids: sequentialIds(),
      deliveryId: () => `delivery${(deliveries += 1)}`,
      log: (server) => this.#log(server),
      onStoreWrite: () => {
        this.#storeWrites += 1;
        this.#isDirty = true;
      },
      onStoreWriteDone: () => void (this.#storeWrites -= 1),
    };
    this.#servers = Array.from(
      { length: count },
      (_, index) => new SimulatedServer(this.#world, `server${index + 1}`),
    );
    database.onWorker = (endpointId, active) => this.#checkWorkers(endpointId, active);
    database.onInstanceWrite = (endpointId, holders) => this.#checkLeader(endpointId, holders);
    this.#podClient = new SimulatedPodClient({
      time,
      random: random('pods'),
      network: this.#network,
      servers: this.#servers,
      accountId: ACCOUNT,
      dataCenterId: DATA_CENTER,
    });
    this.#faults = new SimulatedFaults({
      random: random('faults'),
      world: this.#world,
      servers: this.#servers,
      network: this.#network,
      disk,
      workers: () => [...this.#workers.values()].filter(({ isAlive }) => isAlive),
      exitWorker: ({ id }) => this.#exits.get(id)?.(1),
      trace: (line) => this.#trace.addFault(line),
    });
  }

  async run(): Promise<SimulationResult> {
    const [time, load] = [this.#time, this.#load];
    if (this.#world.shards > 1) await useWorkerShards(this.#world.database, this.#world.shards);
    time.afterStep = () => this.#afterStep();
    time.whenIdle = () => this.#options.database.whenIdle?.();
    time.install();
    useUpDigits(time);
    try {
      for (const server of this.#servers) server.start();
      this.#startClients(load);
      deleteOneEndpoint(load, {
        time,
        random: seededRandom(this.#options.seed, 'deletion'),
        servers: this.#servers,
        sample: this.#endpoints[0],
        trace: (line) => this.#trace.add(line),
      });
      this.#faults.start(load);
      await time.runUntil(load);
      await this.#waitUntilIdle();
      await this.#afterStep();
      await this.#checkIdleState();
    } catch (error) {
      if (!(error instanceof InvariantViolation)) throw error;
      this.#violation ??= error;
    } finally {
      time.uninstall();
    }
    const violation = this.#violation;
    this.#trace.add(`${time.steps} steps, ${time.digest}`);
    return {
      seed: this.#options.seed,
      violation,
      trace:
        this.#options.traceAll === true
          ? this.#trace.all()
          : violation === undefined
            ? []
            : this.#trace.about(violation.about),
      jobs: this.#model.jobs.size,
      instances: this.#world.engine.history.length,
      steps: time.steps,
      servers: this.#servers.length,
      shards: this.#world.shards,
      hash: this.#trace.hash(),
    };
  }

  #startClients(until: number): void {
    this.#podClient.start(until);
    for (let client = 0; client < 3; client += 1)
      new SimulatedClient({
        time: this.#time,
        random: seededRandom(this.#options.seed, `client${client}`),
        network: this.#network,
        servers: this.#servers,
        endpoints: this.#endpoints,
        model: this.#model,
        name: `client${client}`,
        onPurge: (endpointId) => this.#purged.add(endpointId),
        onViolation: (violation) => void (this.#violation ??= violation),
        trace: (line) => this.#trace.add(line),
      }).start(until);
  }

  /** An instance of the generation that shall run is not ended by a server. */
  #checkPodMayEnd({ id, labels }: InstanceSpec): void {
    const pod = labels['endpoint'] === undefined ? this.#options.database.podNow?.(id) : undefined;
    if (pod?.wanted === 'running' && labels[GENERATION_LABEL] === String(pod.generation))
      this.#violation ??= new InvariantViolation(id, `${id} was stopped, though it shall run`);
  }

  /** However many servers there are, and whoever leads. That one has just ended may not be written yet. */
  #checkWorkers(endpointId: string, active: readonly string[]): void {
    const max = this.#world.endpoints.get(endpointId)?.workersMax;
    // It was deleted, and its workers end.
    if (max === undefined) return;
    const alive = active.filter((id) => this.#workers.get(id)?.isAlive !== false);
    if (alive.length > max)
      this.#violation ??= new InvariantViolation(
        alive.at(-1) ?? endpointId,
        `${endpointId} has ${alive.join(', ')}, and ${max} is its maximum`,
      );
  }

  /** What only the leader may write is written by none that another server has followed. */
  #checkLeader(endpointId: string | null, holders: Readonly<Record<string, string>>): void {
    const writer = writesAsLeader();
    const { shards } = this.#world;
    const lease =
      shards === 1 || endpointId === null
        ? leaderLeaseName(shards)
        : shardLeaseName(workerShardOf(endpointId, shards), shards);
    const leader = holders[lease] ?? '';
    if (writer !== undefined && writer !== leader)
      this.#violation ??= new InvariantViolation(
        writer.replace(/-.*/, ''),
        `${writer} changed workers or pods, though ${leader} leads by now`,
      );
  }

  #startWorker(id: string, endpointId: string, exit: (exitCode: number) => void): SimulatedWorker {
    const random = seededRandom(this.#options.seed, id);
    const worker = new SimulatedWorker({
      time: this.#time,
      random,
      network: this.#network,
      servers: this.#servers,
      endpointId,
      id,
      exit,
      // What is left when the load is over is done soon: to wait for it would be half of a run.
      jobDuration: () => random.next() ** 3 * (this.#time.now < this.#load ? 25_000 : 1_000),
      trace: (line) => this.#trace.add(line),
    });
    this.#workers.set(id, worker);
    this.#exits.set(id, exit);
    return worker;
  }

  /** Resolves later only where the journal is read over a network. */
  #afterStep(): Promise<void> | undefined {
    const reading = this.#isDirty ? this.#options.database.readJournal?.() : undefined;
    if (reading !== undefined) return reading.then(() => this.#check());
    this.#check();
    return undefined;
  }

  #check(): void {
    if (this.#isDirty) {
      this.#isDirty = this.#storeWrites > 0;
      this.#model.refresh();
    }
    if (this.#violation !== undefined) throw this.#violation;
  }

  /** Goes on until nothing is left to do, or for as long as that may take. */
  async #waitUntilIdle(): Promise<void> {
    const time = this.#time;
    const until = Math.max(time.now, this.#faults.lastAt) + REST_MS;
    const rests = async (): Promise<boolean> =>
      time.now > this.#faults.lastAt &&
      this.#world.engine.running.length === 0 &&
      [...this.#model.jobs.values()].every(hasEnded) &&
      this.#podClient.isDone &&
      !(await this.#options.database.hasUnfinished());
    do await time.runUntil(time.now + CHECK_INTERVAL_MS);
    while (time.now < until && !(await rests()));
    this.#rests = time.now < until;
  }

  /** The faults are long over, and nobody submits any more. */
  #checkIdleState(): Promise<void> {
    return checkIdleState({
      database: this.#options.database,
      world: this.#world,
      model: this.#model,
      acknowledgedPods: this.#podClient.acknowledged,
      lastFaultAt: this.#faults.lastAt,
      rests: this.#rests,
    });
  }

  #log(server: string): Log {
    const write = (fields: { err?: unknown }, text: string): void =>
      this.#trace.add(`${server}: ${text}${describeFields(fields)}`);
    const log = { trace: write, debug: write, info: write, warn: write, error: write, fatal: write };
    return log as unknown as Log;
  }
}

/** In some of the runs with several servers, they divide the endpoints among themselves. */
function shardsOf(seed: number): number {
  const random = seededRandom(seed, 'shards');
  return random.chance(SHARDS_SHARE) ? random.between(2, 4) : 1;
}

function fail(): never {
  throw new Error('there are no shards in this run');
}

/** Job ids and leases take their digits from a pool. What an earlier run left there is none of this one's. */
function useUpDigits(time: VirtualTime): void {
  while (time.draws === 0) newLeaseToken();
}

/** To encrypt what pods carry would be a tenth of a run. */
class PlainSealer extends Sealer {
  override seal(plain: string): string {
    return plain;
  }

  override open(sealed: string): string {
    return sealed;
  }
}

const SEALER = new PlainSealer(Buffer.alloc(32));
const PRICES = { gpu: {}, cpu: {}, disk: {} } as unknown as Parameters<typeof usageRules>[0];

function sequentialIds(): SimulatedWorld['ids'] {
  let count = 0;
  const next = (): string => `worker${(count += 1)}`;
  return { resource: next, apiKey: next };
}

function describeFields(fields: { err?: unknown }): string {
  const { err, ...rest } = fields;
  const shown = Object.keys(rest).length > 0 ? ` ${JSON.stringify(rest)}` : '';
  return err instanceof Error ? `${shown}: ${err.message}` : shown;
}
