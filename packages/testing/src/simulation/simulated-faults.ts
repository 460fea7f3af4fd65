import type { SeededRandom } from '../safety/seeded-random.ts';
import type { SimulatedDisk } from './simulated-disk.ts';
import type { SimulatedNetwork } from './simulated-network.ts';
import { MAX_DELAY_MS } from './store-connection.ts';
import type { SimulatedServer } from './simulated-server.ts';
import type { SimulatedWorld } from './simulated-world.ts';
import type { SimulatedWorker } from './simulated-worker.ts';

export interface FaultDeps {
  random: SeededRandom;
  world: SimulatedWorld;
  servers: readonly SimulatedServer[];
  network: SimulatedNetwork;
  disk: SimulatedDisk;
  workers(): SimulatedWorker[];
  exitWorker(worker: SimulatedWorker): void;
  trace(line: string): void;
}

/** The share of runs without a fault: what goes wrong in these cannot be excused. */
const CALM_SHARE = 0.1;
const HOUR_MS = 3_600_000;

/** Lets things go wrong at random times, and records when the last of it is over. */
export class SimulatedFaults {
  readonly #deps: FaultDeps;
  /** The kinds of faults of this run: few at a time, so that each is met without the others, too. */
  readonly #kinds: (() => number)[];
  lastAt = -Infinity;
  /**
   * How long a server was frozen or could not reach the database at most: what it began before may be done by
   * its time of then.
   */
  longestDelay = 0;

  constructor(deps: FaultDeps) {
    this.#deps = deps;
    const { random, world } = deps;
    const kinds: (() => number)[] = [
      () => this.#crash(),
      () => this.#restart(),
      () => this.#freezeServer(),
      () => this.#freezeWorker(),
      () => this.#endWorker(),
      () => this.#stepClock(),
      () => this.#stepClockWhileDown(),
      () => this.#breakEngine(),
      () => this.#loseMessages(),
      () => this.#loseWebhooks(),
      ...(world.isLocal
        ? [() => this.#fillDisk(), () => this.#stallDisk()]
        : [
            () => this.#breakStore(),
            () => this.#delayStore(),
            () => this.#cutServerOff(),
            () => this.#loseWakeups(),
          ]),
    ];
    this.#kinds = random.chance(CALM_SHARE) ? [] : kinds.filter(() => random.chance(0.4));
  }

  start(until: number): void {
    const { random, world } = this.#deps;
    const next = (): void => {
      const wait = random.next() * 5_000;
      world.time.after(wait, undefined, () => {
        if (world.time.now > until) return;
        const fault = random.pick(this.#kinds);
        if (fault !== undefined) this.lastAt = Math.max(this.lastAt, world.time.now + fault());
        next();
      });
    };
    next();
  }

  #later(milliseconds: number, work: () => void): void {
    this.#deps.world.time.after(milliseconds, undefined, work);
  }

  #server(): SimulatedServer {
    return this.#deps.random.pick(this.#deps.servers) as SimulatedServer;
  }

  #crash(): number {
    const server = this.#server();
    const wait = this.#deps.random.next() ** 2 * 20_000;
    this.#deps.trace(`${server.name} crashes`);
    server.crash();
    this.#later(wait, () => server.start());
    return wait;
  }

  #restart(): number {
    const server = this.#server();
    this.#deps.trace(`${server.name} is restarted`);
    const wait = this.#deps.random.next() * 4_000;
    void server.stop();
    this.#later(3_000 + wait, () => {
      server.crash();
      server.start();
    });
    return 3_000 + wait;
  }

  #freezeServer(): number {
    const server = this.#server();
    const wait = this.#deps.random.next() ** 2 * 45_000;
    this.#deps.trace(`${server.name} is frozen for ${Math.round(wait)} ms`);
    this.longestDelay = Math.max(this.longestDelay, wait);
    server.freeze(wait);
    return wait;
  }

  #freezeWorker(): number {
    const { random, world, workers, trace } = this.#deps;
    const worker = random.pick(workers());
    if (worker === undefined) return 0;
    const wait = random.next() ** 2 * 60_000;
    trace(`${worker.id} is frozen for ${Math.round(wait)} ms`);
    worker.process.frozenUntil = world.time.now + wait;
    return wait;
  }

  #endWorker(): number {
    const { random, workers, exitWorker, trace } = this.#deps;
    const worker = random.pick(workers());
    if (worker === undefined) return 0;
    trace(`${worker.id} is killed`);
    exitWorker(worker);
    return 0;
  }

  #step(): number {
    const { random } = this.#deps;
    return (random.chance(0.5) ? 1 : -1) * random.between(5_000, 2 * HOUR_MS);
  }

  #stepClock(): number {
    const { random, world, trace } = this.#deps;
    const step = this.#step();
    if (!world.isLocal && random.chance(0.5)) {
      trace(`the clock of the database is set by ${step} ms`);
      world.databaseClock.ahead += step;
    } else {
      const server = this.#server();
      trace(`the clock of ${server.name} is set by ${step} ms`);
      server.machine.ahead += step;
    }
    return 0;
  }

  #stepClockWhileDown(): number {
    const { random, trace } = this.#deps;
    const server = this.#server();
    const step = this.#step();
    const wait = 1_000 + random.next() * 10_000;
    trace(`${server.name} crashes, and its clock is set by ${step} ms`);
    server.crash();
    this.#later(wait / 2, () => void (server.machine.ahead += step));
    this.#later(wait, () => server.start());
    return wait;
  }

  #breakEngine(): number {
    const { random, world, trace } = this.#deps;
    const wait = random.next() * 15_000;
    if (random.chance(0.5)) {
      trace(`the engine does not answer for ${Math.round(wait)} ms`);
      world.engine.downUntil = world.time.now + wait;
      return wait;
    }
    trace(`some calls of the engine fail for ${Math.round(wait)} ms`);
    world.engine.failureRate = 0.4;
    this.#later(wait, () => void (world.engine.failureRate = 0));
    return wait;
  }

  #loseMessages(): number {
    const { random, network, trace } = this.#deps;
    const wait = random.next() * 30_000;
    trace(`messages are lost for ${Math.round(wait)} ms`);
    network.lossRate = random.pick([0.05, 0.3]) ?? 0;
    network.duplicateRate = 0.2;
    this.#later(wait, () => {
      network.lossRate = 0;
      network.duplicateRate = 0;
    });
    // Requests that were lost are noticed when they time out.
    return wait + 30_000;
  }

  #loseWebhooks(): number {
    const { random, world, trace } = this.#deps;
    const wait = random.next() * 20_000;
    trace(`webhooks are lost for ${Math.round(wait)} ms`);
    world.receiver.lossRate = 0.4;
    this.#later(wait, () => void (world.receiver.lossRate = 0));
    return wait;
  }

  #fillDisk(): number {
    const { random, disk, trace } = this.#deps;
    const wait = random.next() * 15_000;
    trace(`the disk is full for ${Math.round(wait)} ms`);
    disk.fill();
    this.#later(wait, () => disk.free());
    return wait;
  }

  #stallDisk(): number {
    const { random, disk, trace } = this.#deps;
    const wait = random.next() * 5_000;
    trace(`the disk is slow for ${Math.round(wait)} ms`);
    disk.stall(wait);
    disk.failureRate = random.chance(0.3) ? 0.2 : 0;
    this.#later(wait, () => void (disk.failureRate = 0));
    return wait;
  }

  #breakStore(): number {
    const { random, world, trace } = this.#deps;
    const wait = random.next() * 15_000;
    if (random.chance(0.4)) {
      trace(`the database does not answer for ${Math.round(wait)} ms`);
      world.storeFaults.downUntil = world.time.now + wait;
      return wait;
    }
    trace(`connections to the database break for ${Math.round(wait)} ms`);
    world.storeFaults.failureRate = 0.15;
    this.#later(wait, () => void (world.storeFaults.failureRate = 0));
    return wait;
  }

  #delayStore(): number {
    const { random, world, trace } = this.#deps;
    const wait = random.next() * 15_000;
    trace(`some calls of the database are late for ${Math.round(wait)} ms`);
    world.storeFaults.lateRate = 0.1;
    this.#later(wait, () => void (world.storeFaults.lateRate = 0));
    this.longestDelay = Math.max(this.longestDelay, MAX_DELAY_MS);
    return wait + MAX_DELAY_MS;
  }

  #cutServerOff(): number {
    const { random, world, trace } = this.#deps;
    const server = this.#server();
    const wait = random.next() ** 2 * 30_000;
    trace(`${server.name} does not reach the database for ${Math.round(wait)} ms`);
    server.cutOffUntil = world.time.now + wait;
    this.longestDelay = Math.max(this.longestDelay, wait);
    return wait + 5_000;
  }

  #loseWakeups(): number {
    const { random, world, trace } = this.#deps;
    const wait = random.next() * 40_000;
    trace(`wake-ups are lost for ${Math.round(wait)} ms`);
    world.wakeups.lossRate = random.pick([0.3, 1]) ?? 0;
    this.#later(wait, () => void (world.wakeups.lossRate = 0));
    return wait;
  }
}
