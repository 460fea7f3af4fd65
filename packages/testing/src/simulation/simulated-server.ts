import type { Endpoint } from '../../../cloud/src/domain/records.ts';
import type { JobQueue } from '../../../cloud/src/queue/job-queue.ts';
import type { SteadyClock } from '../../../cloud/src/support/steady-clock.ts';
import type { PodRequests, PodServer } from './simulated-pod-client.ts';
import type { SimulatedProcess } from './virtual-time.ts';
import { composeServer } from './simulated-server-parts.ts';
import type { EndpointRequests, Machine, RunningServer } from './simulated-server-parts.ts';
import type { SimulatedWorld } from './simulated-world.ts';

/** One server, with the real parts inside. It can crash, freeze, stop and start again. */
export class SimulatedServer implements PodServer {
  readonly name: string;
  readonly machine: Machine = { ahead: 0, savedClock: undefined };
  readonly #world: SimulatedWorld;
  readonly #downListeners = new Set<() => void>();
  #starts = 0;
  /** It does not reach the database before this time. */
  cutOffUntil = 0;
  #process: SimulatedProcess | undefined;
  #running: RunningServer | undefined;

  constructor(world: SimulatedWorld, name: string) {
    this.#world = world;
    this.name = name;
  }

  /** Undefined while it is down or starts. */
  get process(): SimulatedProcess | undefined {
    return this.#running?.process;
  }

  get queue(): JobQueue | undefined {
    return this.#running?.queue;
  }

  get pods(): PodRequests | undefined {
    return this.#running?.pods;
  }

  /** This server is asked to create an endpoint. */
  createEndpoint(endpoint: Endpoint): void {
    this.#world.endpoints.set(endpoint.id, endpoint);
    this.#inEndpoints((endpoints) => endpoints.onChanged(endpoint.id));
  }

  /** This server is asked to delete an endpoint. What it cannot remove now goes later. */
  deleteEndpoint(endpointId: string): void {
    this.#world.endpoints.delete(endpointId);
    this.#inEndpoints((endpoints) => void endpoints.onDeleted(endpointId).catch(() => undefined));
  }

  #inEndpoints(request: (endpoints: EndpointRequests) => void): void {
    const running = this.#running;
    if (running !== undefined) this.#world.time.runIn(running.process, () => request(running.endpoints));
  }

  get clock(): SteadyClock | undefined {
    return this.#running?.clock;
  }

  get isDown(): boolean {
    return this.#process === undefined;
  }

  onDown(listener: () => void): () => void {
    this.#downListeners.add(listener);
    return () => this.#downListeners.delete(listener);
  }

  start(): void {
    if (this.#process !== undefined) return;
    const process: SimulatedProcess = { frozenUntil: 0, hasCrashed: false };
    this.#process = process;
    this.#world.time.runIn(process, () => {
      this.#compose(process).then(
        (running) => {
          if (this.#process === process) this.#running = running;
        },
        () => {
          // The database did not answer: a supervisor starts the server again.
          if (this.#process !== process) return;
          this.#process = undefined;
          process.hasCrashed = true;
          this.#world.time.after(1_000, undefined, () => this.start());
        },
      );
    });
  }

  crash(): void {
    const process = this.#process;
    const running = this.#running;
    if (process === undefined) return;
    process.hasCrashed = true;
    this.#process = undefined;
    this.#running = undefined;
    this.#world.wakeups.leave(process);
    // This ends what would keep the simulation busy.
    if (running !== undefined) this.#world.time.runIn(process, () => running.abandon());
    this.#notifyDown();
  }

  /** Everything in it stands still for a while, and then goes on. */
  freeze(milliseconds: number): void {
    if (this.#process === undefined) return;
    this.#process.frozenUntil = this.#world.time.now + milliseconds;
  }

  /** In order, as on SIGTERM. */
  async stop(): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    this.#running = undefined;
    await this.#world.time.runIn(running.process, () => running.close());
    if (this.#process !== running.process) return;
    this.#process = undefined;
    running.process.hasCrashed = true;
    this.#world.wakeups.leave(running.process);
    this.#notifyDown();
  }

  #notifyDown(): void {
    for (const listener of [...this.#downListeners]) listener();
  }

  #compose(process: SimulatedProcess): Promise<RunningServer> {
    this.#starts += 1;
    return composeServer(this.#world, {
      name: this.name,
      leader: `${this.name}-${this.#starts}`,
      machine: this.machine,
      process,
      isCutOff: () => this.cutOffUntil > this.#world.time.now,
    });
  }
}
