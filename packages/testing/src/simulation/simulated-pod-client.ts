import { samplePod } from '../../../cloud/src/domain/pods/pod.fixture.ts';
import type { AuditedAction } from '../../../cloud/src/domain/audit.ts';
import type { AuditEntry } from '../../../cloud/src/domain/records.ts';
import type { Pod } from '../../../cloud/src/domain/pods/pod-record.ts';
import {
  requestRestart,
  requestStart,
  requestStop,
  requestTermination,
} from '../../../cloud/src/domain/pods/pod-transitions.ts';
import type { PodStore } from '../../../cloud/src/store/pod-store.ts';
import { BerthError } from '../../../cloud/src/support/errors.ts';
import type { SeededRandom } from '../safety/seeded-random.ts';
import { NetworkError } from './simulated-network.ts';
import type { Reachable, SimulatedNetwork } from './simulated-network.ts';
import type { SimulatedProcess, VirtualTime } from './virtual-time.ts';

/** What a client reaches of a server: the pods of the store, as the routes change them. */
export interface PodRequests {
  store: PodStore;
  now(): number;
  onChanged(podId: string): void;
}

export interface PodServer extends Reachable {
  readonly pods: PodRequests | undefined;
}

export interface SimulatedPodClientDeps {
  time: VirtualTime;
  random: SeededRandom;
  network: SimulatedNetwork;
  servers: readonly PodServer[];
  accountId: string;
  dataCenterId: string;
}

const REQUEST_TIMEOUT_MS = 30_000;
const MAX_PODS = 3;
const AUDIT = {
  keyId: null,
  interface: 'simulated',
  requestId: '',
  resource: 'pod',
  changes: [],
} satisfies Partial<AuditEntry>;

/** Creates, stops, starts and restarts pods, and terminates all of them in the end. */
export class SimulatedPodClient {
  readonly #deps: SimulatedPodClientDeps;
  readonly #process: SimulatedProcess = { frozenUntil: 0, hasCrashed: false };
  /** All that may exist. */
  readonly pods: string[] = [];
  readonly acknowledged = new Set<string>();
  isDone = false;

  constructor(deps: SimulatedPodClientDeps) {
    this.#deps = deps;
  }

  start(until: number): void {
    this.#deps.time.runIn(this.#process, () => void this.#main(until));
  }

  async #main(until: number): Promise<void> {
    const { time, random } = this.#deps;
    while (time.now < until) {
      await time.sleep(random.next() * 5_000, this.#process);
      await this.#act().catch(checkRefusal);
    }
    for (const id of this.pods) await this.#terminate(id);
    this.isDone = true;
    // A server that was frozen may create one that was given up long ago.
    for (;;) {
      await time.sleep(10_000, this.#process);
      for (const id of this.pods) if (!this.acknowledged.has(id)) await this.#terminate(id);
    }
  }

  #act(): Promise<void> {
    const { random } = this.#deps;
    const known = random.pick(this.pods);
    if (known === undefined || (this.pods.length < MAX_PODS && random.chance(0.3))) return this.#create();
    const choice = random.next();
    if (choice < 0.35) return this.#change(known, 'stop', (pod, now) => requestStop(pod, now));
    if (choice < 0.7)
      return this.#change(known, 'start', (pod, now) => requestStart(pod, pod, pod.costPerHour, now));
    if (choice < 0.9)
      return this.#change(known, 'restart', (pod, now) => requestRestart(pod, 'restart', now));
    return this.#change(known, 'delete', requestTermination);
  }

  async #create(): Promise<void> {
    const { random, accountId, dataCenterId } = this.#deps;
    const id = `pod${this.pods.length + 1}`;
    this.pods.push(id);
    const stopAfter = random.chance(0.2) ? random.between(5_000, 30_000) : null;
    await this.#request(async ({ store, now, onChanged }) => {
      const at = now();
      const record: Pod = {
        ...samplePod,
        id,
        accountId,
        dataCenterId,
        image: 'simulated',
        createdAt: at,
        updatedAt: at,
        statusChangedAt: at,
        stopAfter: stopAfter === null ? null : at + stopAfter,
      };
      const audit = { ...AUDIT, at, accountId, action: 'create' as const, resourceId: id };
      await store.insert(accountId, {}, () => ({ record, audit }));
      onChanged(id);
    });
    this.acknowledged.add(id);
  }

  #change(id: string, action: AuditedAction, next: (pod: Pod, now: number) => Pod): Promise<void> {
    const { accountId } = this.#deps;
    return this.#request(async ({ store, now, onChanged }) => {
      const at = now();
      await store.change(accountId, id, {}, (current) => ({
        record: next(current, at),
        audit: { ...AUDIT, at, accountId, action, resourceId: id },
      }));
      onChanged(id);
    });
  }

  /** Until a server has it. */
  async #terminate(id: string): Promise<void> {
    for (;;) {
      try {
        return await this.#change(id, 'delete', requestTermination);
      } catch (error) {
        checkRefusal(error);
        if (error instanceof BerthError && error.code === 'state') return;
        await this.#deps.time.sleep(1_000, this.#process);
      }
    }
  }

  #request(handle: (pods: PodRequests) => Promise<void>): Promise<void> {
    const { network, servers, random } = this.#deps;
    const up = servers.filter(({ process }) => process !== undefined);
    const server = random.pick(up.length > 0 ? up : servers) as PodServer;
    const { pods } = server;
    return network.request(this.#process, server, { timeout: REQUEST_TIMEOUT_MS }, () =>
      handle(pods as PodRequests),
    );
  }
}

/** A server may refuse, and may not be there; anything else is a mistake. */
function checkRefusal(error: unknown): void {
  if (!(error instanceof BerthError) && !(error instanceof NetworkError)) throw error;
}
