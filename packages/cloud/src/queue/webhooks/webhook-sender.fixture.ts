import { once } from 'node:events';
import http from 'node:http';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, afterEach, before } from 'node:test';
import type { DatabaseKind } from '../../../../testing/src/test-database.ts';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { Delivery, DeliveryEntry } from '../../domain/job-records.ts';
import type { JobStore } from '../../store/job-store.ts';
import type { Clock } from '../../support/clock.ts';
import { randomIds } from '../../support/ids.ts';
import { createLog } from '../../support/log.ts';
import type { DeliveryStore } from './delivery-lease.ts';
import { webhookSenderOptions } from './webhook-options.ts';
import type { WebhookSenderOptions } from './webhook-options.ts';
import { WebhookSender } from './webhook-sender.ts';
import type { WebhookSenderDeps } from './webhook-sender.ts';
import { webhookSecret } from './webhook-signature.ts';

export const OPTIONS = webhookSenderOptions({
  allowPrivate: true,
  attempts: 3,
  pause: 10,
  timeout: 10,
  keepLog: 72,
});
export const NOW = Date.UTC(2026, 5, 1);
export const log = createLog({ level: 'silent', format: 'json' });
export const secretOf = (accountId: string): string => webhookSecret(Buffer.alloc(32, 5), accountId);

export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  answer(status: number, headers?: Record<string, string>): void;
}

/** A receiver on loopback. It gives the configured answer, or leaves it to the test. */
export class Receiver {
  readonly received: Received[] = [];
  readonly #server: http.Server;
  #waiting: (() => void)[] = [];
  connections = 0;
  open = 0;
  mostOpen = 0;

  constructor(answer: (received: Received, count: number) => void = ({ answer: reply }) => reply(200)) {
    this.#server = http.createServer((request, response) => void this.#receive(request, response, answer));
    this.#server.on('connection', () => (this.connections += 1));
  }

  async #receive(
    request: http.IncomingMessage,
    response: ServerResponse,
    answer: (received: Received, count: number) => void,
  ): Promise<void> {
    this.open += 1;
    this.mostOpen = Math.max(this.mostOpen, this.open);
    response.once('close', () => (this.open -= 1));
    const received: Received = {
      path: request.url ?? '',
      headers: request.headers,
      body: await text(request),
      answer: (status, headers = {}) => void response.writeHead(status, headers).end('thank you'),
    };
    this.received.push(received);
    answer(received, this.received.length);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async listen(host = '127.0.0.1', port = 0): Promise<this> {
    await once(this.#server.listen(port, host), 'listening');
    return this;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook`;
  }

  /** Resolves when this many requests have arrived. */
  async has(count: number): Promise<void> {
    while (this.received.length < count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  attempts(): [string | string[] | undefined, string | string[] | undefined][] {
    return this.received.map(({ headers }) => [headers['x-berth-delivery'], headers['x-berth-attempt']]);
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** The real store, and a way to wait for writes to it. */
class RecordingDeliveryStore implements DeliveryStore {
  readonly #store: DeliveryStore;
  readonly saved: Delivery[] = [];
  #waiting: (() => void)[] = [];
  /** The cut-off times of log clean-ups. */
  readonly forgets: number[] = [];
  forgetFails = false;
  /** Runs before each save; where it throws, the save fails. */
  beforeSave: (delivery: Delivery) => void = () => undefined;

  constructor(store: DeliveryStore) {
    this.#store = store;
  }

  listDueDeliveries = (now: number, limit: number, bytes: number): Promise<Delivery[]> =>
    this.#store.listDueDeliveries(now, limit, bytes);
  listDeliveries = (
    endpointId: string,
    filter: { jobId?: string; limit: number },
  ): Promise<DeliveryEntry[]> => this.#store.listDeliveries(endpointId, filter);
  findDelivery = (endpointId: string, id: string): Promise<Delivery | undefined> =>
    this.#store.findDelivery(endpointId, id);

  async deleteEndedDeliveries(before: number): Promise<void> {
    this.forgets.push(before);
    if (this.forgetFails) throw new Error('the store is away');
    await this.#store.deleteEndedDeliveries(before);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async saveDelivery(delivery: Delivery): Promise<void> {
    this.beforeSave(delivery);
    await this.#store.saveDelivery(delivery);
    this.saved.push(delivery);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async updateDelivery(
    seen: Pick<Delivery, 'id' | 'endpointId' | 'nextAt' | 'attempts'>,
    next: Delivery,
  ): Promise<boolean> {
    this.beforeSave(next);
    const changed = await this.#store.updateDelivery(seen, next);
    if (changed) this.saved.push(next);
    for (const wake of this.#waiting.splice(0)) wake();
    return changed;
  }

  /** The first stored version of a delivery that matches. */
  async when(id: string, is: (delivery: Delivery) => boolean): Promise<Delivery> {
    for (;;) {
      const found = this.saved.find((delivery) => delivery.id === id && is(delivery));
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  whenDelivered(id: string): Promise<Delivery> {
    return this.when(id, ({ state }) => state === 'delivered');
  }

  /** After an attempt that did not end the series. */
  whenTried(id: string, attempts: number): Promise<Delivery> {
    return this.when(id, (delivery) => delivery.attempts === attempts && delivery.lastError !== null);
  }
}

interface Closable {
  close(): Promise<void> | void;
}

/** Webhooks on one database, for the tests of a suite. Everything that a test opens is closed after it. */
export class WebhookFixture {
  #migrated: MigratedDatabase | undefined;
  #jobs: JobStore | undefined;
  endpointId = '';
  #toClose: Closable[] = [];

  /** Called where the suite is declared. */
  constructor(kind: DatabaseKind) {
    before(async () => {
      this.#migrated = await createMigratedDatabase(kind);
      this.#jobs = this.#migrated.database.jobs();
    });
    afterEach(async () => {
      await this.closeAll();
      await this.jobs.removeEndpoint(this.endpointId);
    });
    after(() => this.#migrated?.drop());
  }

  get jobs(): JobStore {
    if (this.#jobs === undefined) throw new Error('the database is not there yet');
    return this.#jobs;
  }

  closeAfterTest<T extends Closable>(thing: T): T {
    this.#toClose.unshift(thing);
    return thing;
  }

  async closeAll(): Promise<void> {
    for (const thing of this.#toClose.splice(0)) await thing.close();
  }

  async receiver(answer?: (received: Received, count: number) => void): Promise<Receiver> {
    return this.closeAfterTest(await new Receiver(answer).listen());
  }

  recordingStore(): RecordingDeliveryStore {
    this.endpointId = randomIds.resource();
    return new RecordingDeliveryStore(this.jobs);
  }

  sender(
    store: DeliveryStore,
    clock: Clock,
    options: Partial<WebhookSenderOptions> = {},
    more: Partial<WebhookSenderDeps> = {},
  ): WebhookSender {
    return this.closeAfterTest(
      new WebhookSender({
        store,
        clock,
        log,
        secretOf,
        options: { ...OPTIONS, closeGrace: 0, ...options },
        ...more,
      }),
    );
  }

  async createDueDelivery(url: string, now = NOW): Promise<Delivery> {
    const delivery: Delivery = {
      id: randomIds.resource(),
      endpointId: this.endpointId,
      accountId: 'a1',
      jobId: 'j1',
      url,
      body: '{"id":"j1","output":1.0,"input":"ü"}',
      attempts: 0,
      nextAt: now,
      state: 'pending',
      lastStatus: null,
      lastError: null,
      createdAt: now,
      updatedAt: now,
    };
    await this.jobs.saveDelivery(delivery);
    return delivery;
  }
}
