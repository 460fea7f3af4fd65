import { setTimeout as pause } from 'node:timers/promises';
import type { KubernetesClient } from './client/kubernetes-client.ts';
import { toKubernetesError } from './client/kubernetes.errors.ts';
import { listObjects } from './client/list-objects.ts';
import type { EventObject } from './kubernetes-objects.ts';

const MIN_PAUSE_MS = 1_000;
/** A list costs the API server much: the pause after one is so many times as long as the list took. */
const PAUSE_PER_LIST = 20;
/** What every start has. */
const USUAL_REASONS = ['Scheduled', 'Created', 'Started', 'Killing'];

export interface PodEventsOptions {
  client: Pick<KubernetesClient, 'get'>;
  namespace: string;
  /** For tests. */
  now?: () => number;
  wait?: (milliseconds: number) => Promise<void>;
}

/**
 * What the cluster says about pods that start slowly. Events have no index: asking for those of one pod costs the
 * API server as much as asking for all, a second where there are thousands. So one list answers all who ask
 * before it begins, and lists are made one after the other, with pauses.
 */
export class PodEvents {
  readonly #options: Required<PodEventsOptions>;
  /** The list that has not begun. */
  #next: Promise<Map<string, EventObject[]>> | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #notBefore = -Infinity;

  constructor({ now = () => performance.now(), wait = pauseUnreferenced, ...options }: PodEventsOptions) {
    this.#options = { now, wait, ...options };
  }

  /** Those of the pod with this uid, as they are after this call. */
  async of(uid: string): Promise<EventObject[]> {
    if (this.#next === undefined) {
      this.#next = this.#listAfter(this.#last);
      this.#last = this.#next.catch(() => undefined);
    }
    return (await this.#next).get(uid) ?? [];
  }

  async #listAfter(last: Promise<unknown>): Promise<Map<string, EventObject[]>> {
    await last;
    const { now, wait } = this.#options;
    await wait(Math.max(0, this.#notBefore - now()));
    this.#next = undefined;
    const began = now();
    try {
      return await this.#list();
    } finally {
      this.#notBefore = now() + Math.max(MIN_PAUSE_MS, PAUSE_PER_LIST * (now() - began));
    }
  }

  async #list(): Promise<Map<string, EventObject[]>> {
    const { client, namespace } = this.#options;
    const fieldSelector = [
      'involvedObject.kind=Pod',
      ...USUAL_REASONS.map((reason) => `reason!=${reason}`),
    ].join(',');
    const path = `/api/v1/namespaces/${namespace}/events`;
    try {
      const { objects } = await listObjects(client, path, { fieldSelector }, selectEvent);
      return Map.groupBy(objects, ({ involvedObject }) => involvedObject.uid);
    } catch (error) {
      throw toKubernetesError(error);
    }
  }
}

function selectEvent({ metadata: { name, uid }, involvedObject, reason, message }: EventObject): EventObject {
  return {
    metadata: { name, uid },
    involvedObject: { uid: involvedObject.uid },
    ...(reason !== undefined && { reason }),
    ...(message !== undefined && { message }),
  };
}

async function pauseUnreferenced(milliseconds: number): Promise<void> {
  if (milliseconds > 0) await pause(milliseconds, undefined, { ref: false });
}
