import type { Delivery } from '../../domain/job-records.ts';
import { formatTraceparent } from '../../domain/tracing.ts';
import type { JobTracing, SpanEnd, TraceContext } from '../../domain/tracing.ts';
import { isRecent } from '../../support/clock.ts';
import type { Clock } from '../../support/clock.ts';
import type { Log } from '../../support/log.ts';
import { withStoreRetries } from '../store-retry.ts';
import { DueTimer } from './due-timer.ts';
import { afterAttempt, nextAttemptNumber } from './webhook-delivery.ts';
import type { AttemptOutcome } from './webhook-delivery.ts';
import { findLeased, leaseDelivery, commitAttempt } from './delivery-lease.ts';
import type { DeliveryStore, LeasedDelivery } from './delivery-lease.ts';
import type { WebhookSenderOptions } from './webhook-options.ts';
import { postWebhook } from './webhook-request.ts';
import { ReceiverQueue } from './receiver-queue.ts';
import { signWebhook } from './webhook-signature.ts';
import { resolveTarget, TargetRefusedError, createTargetPolicy } from './webhook-target.ts';
import type { TargetPolicy } from './webhook-target.ts';

/** Deliveries are read with their bodies: at most this many and this many bytes at a time. */
const READ_BATCH = 16;
const READ_BATCH_BYTES = 64 * 1024 * 1024;
/** How much longer than its attempt a lease lasts, to store the outcome. */
const LEASE_SLACK_MS = 5_000;
/** How long a delivery waits for its receiver before it is leased again. */
const QUEUED_LEASE_MS = 60_000;
/** The pause after the store failed. */
const FAILED_READ_RETRY_MS = 1_000;

/** How often old entries are deleted from the log. */
const SWEEP_EVERY_MS = 10 * 60_000;

/** Counters since this server started. */
export interface WebhookCounts {
  /** Attempts that ended, with or without an answer. */
  attempts: number;
  /** Deliveries that were accepted. */
  delivered: number;
  /** Series that ended without being accepted. */
  failed: number;
}

export interface WebhookSenderDeps {
  store: DeliveryStore;
  clock: Clock;
  log: Log;
  options: WebhookSenderOptions;
  /** The signing secret of an account. */
  secretOf(accountId: string): string;
  /** Which addresses webhooks may reach; default: from the options. */
  targetPolicy?: TargetPolicy;
  /** Sends one attempt and resolves to the status; default: over HTTP. */
  post?: PostWebhook;
  tracing?: JobTracing | undefined;
}

export type PostWebhook = (
  url: string,
  body: Buffer,
  headers: Record<string, string>,
  signal: AbortSignal,
) => Promise<number>;

/**
 * Sends deliveries to their receivers.
 *
 * Due deliveries are in the store. A **scan** reads and leases them: to send them now, or to queue them in
 * memory while their receiver has no room. A scan runs on a wake, when a known attempt becomes due, and
 * periodically for deliveries that a dead server left. So only the store needs to survive, and a slow
 * receiver delays only its own webhooks. Delivery is at least once: a receiver detects repeats by their id.
 */
export class WebhookSender {
  readonly #deps: WebhookSenderDeps;
  readonly #rules: TargetPolicy;
  readonly #agenda: DueTimer;
  readonly #receivers: ReceiverQueue;
  /** Deliveries in progress, by id. */
  readonly #sending = new Map<string, Promise<void>>();
  /** One for each attempt in progress, to abort it. */
  readonly #attempts = new Set<AbortController>();
  readonly #counts: WebhookCounts = { attempts: 0, delivered: 0, failed: 0 };
  #sweptAt = -Infinity;
  #scanning: Promise<void> | undefined;
  #scanAgain = false;
  #open = false;
  /** Set when attempts are no longer awaited. */
  #stopped = false;

  constructor(deps: WebhookSenderDeps) {
    this.#deps = deps;
    this.#rules = deps.targetPolicy ?? createTargetPolicy(deps.options);
    this.#receivers = new ReceiverQueue(deps.options);
    this.#agenda = new DueTimer(deps.clock, deps.options.pollInterval, () => this.wake());
  }

  get counts(): Readonly<WebhookCounts> {
    return this.#counts;
  }

  start(): void {
    this.#open = true;
    this.#agenda.start();
    this.wake();
  }

  /** Something may be due now. */
  wake(): void {
    if (!this.#open) return;
    this.#scanAgain = true;
    this.#scanning ??= this.#scan().finally(() => {
      this.#scanning = undefined;
      if (this.#scanAgain) this.wake();
    });
  }

  /**
   * Attempts in progress get a moment to end. The others are aborted and become due immediately for the next
   * start.
   */
  async close(): Promise<void> {
    this.#open = false;
    this.#agenda.close();
    const over = setTimeout(() => {
      this.#stopped = true;
      for (const attempt of this.#attempts) attempt.abort();
    }, this.#deps.options.closeGrace);
    await this.#scanning;
    await Promise.all(this.#sending.values());
    clearTimeout(over);
  }

  async #scan(): Promise<void> {
    const { store, clock, log } = this.#deps;
    while (this.#open && this.#scanAgain) {
      this.#scanAgain = false;
      await this.#sweep();
      try {
        const due = await store.listDueDeliveries(clock.now(), READ_BATCH, READ_BATCH_BYTES);
        const fresh = due.filter(({ id }) => !this.#sending.has(id));
        await Promise.all(fresh.map((delivery) => this.#receive(delivery)));
        if (fresh.length > 0) this.#scanAgain = true;
      } catch (error) {
        log.warn({ err: error }, 'due webhooks could not be read or leased; trying again');
        this.#scanAgain = false;
        this.#agenda.add(clock.now() + FAILED_READ_RETRY_MS);
      }
    }
  }

  /** Deletes old ended deliveries. With several servers each does it, which is harmless. */
  async #sweep(): Promise<void> {
    const { store, clock, log, options } = this.#deps;
    const now = clock.now();
    if (isRecent(this.#sweptAt, SWEEP_EVERY_MS, now)) return;
    this.#sweptAt = now;
    try {
      await store.deleteEndedDeliveries(now - options.keepLog);
    } catch (error) {
      log.warn({ err: error }, 'old webhooks could not be removed from the log; trying again later');
    }
  }

  /** Leases a due delivery, and sends it where its receiver has room. Resolves when the lease is stored. */
  async #receive(delivery: Delivery): Promise<void> {
    const { store, clock } = this.#deps;
    const [host, bytes] = [hostOf(delivery), Buffer.byteLength(delivery.body)];
    if (this.#receivers.acquire(host, bytes)) {
      await this.#send({ id: delivery.id, host, bytes }, () => this.#leaseToSend(delivery));
      return;
    }
    const leased = await leaseDelivery(store, delivery, clock.now(), QUEUED_LEASE_MS);
    if (leased !== undefined)
      this.#receivers.enqueue(host, {
        endpointId: leased.endpointId,
        id: leased.id,
        leasedUntil: leased.nextAt,
        bytes,
      });
    // A slot may have become free while the lease was stored.
    this.#sendParked();
  }

  #sendParked(): void {
    const { store, clock, log, options } = this.#deps;
    while (this.#open) {
      const turn = this.#receivers.dequeue();
      if (turn === undefined) return;
      const { host, parked } = turn;
      const leasing = this.#send({ id: parked.id, host, bytes: parked.bytes }, async () => {
        const waiting = await findLeased(store, { ...parked, nextAt: parked.leasedUntil });
        const lastsLongEnough =
          waiting !== undefined && waiting.nextAt >= clock.now() + options.timeout + LEASE_SLACK_MS;
        return lastsLongEnough ? waiting : waiting && this.#leaseToSend(waiting);
      });
      leasing.catch((error: unknown) =>
        log.warn(
          { err: error, delivery: parked.id },
          'a waiting webhook could not be leased; it is sent later',
        ),
      );
    }
  }

  #leaseToSend(delivery: Delivery): Promise<LeasedDelivery | undefined> {
    const { store, clock, options } = this.#deps;
    return leaseDelivery(store, delivery, clock.now(), options.timeout + LEASE_SLACK_MS);
  }

  /**
   * Holds the acquired slot of the receiver during one attempt. Resolves to the lease; the attempt continues
   * in the background.
   */
  #send(
    { id, host, bytes }: { id: string; host: string; bytes: number },
    start: () => Promise<LeasedDelivery | undefined>,
  ): Promise<LeasedDelivery | undefined> {
    const { log } = this.#deps;
    const leasing = start();
    const work = leasing
      .then(
        (leased) => leased && this.#attempt(leased, host),
        // The caller gets this error from the lease.
        () => undefined,
      )
      .catch((error: unknown) =>
        log.error(
          { err: error, delivery: id },
          'what came of a webhook could not be written down; it is sent again when its lease is over',
        ),
      )
      .finally(() => {
        this.#sending.delete(id);
        this.#receivers.release(host, bytes);
        this.#sendParked();
      });
    this.#sending.set(id, work);
    return leasing;
  }

  async #attempt(leased: LeasedDelivery, host: string): Promise<void> {
    const { store, clock, log, options } = this.#deps;
    const { tracing } = this.#deps;
    const trace = await tracing?.beginDelivery(leased.endpointId, leased.jobId).catch(() => undefined);
    const outcome = await this.#deliver(leased, host, trace);
    if (trace !== undefined) tracing?.end(trace, deliverySpan(leased, host, outcome));
    if (outcome !== undefined) this.#counts.attempts += 1;
    const now = clock.now();
    const next =
      outcome === undefined ? { ...leased, nextAt: now } : afterAttempt(leased, outcome, options, now);
    const kept = await withStoreRetries(() => commitAttempt(store, leased, next));
    if (kept && next.state !== 'pending') this.#counts[next.state] += 1;
    const about = {
      delivery: leased.id,
      endpoint: leased.endpointId,
      job: leased.jobId,
      ...(trace !== undefined && { traceId: trace.traceId }),
      host,
      attempt: nextAttemptNumber(leased, options),
      status: next.lastStatus,
      reason: next.lastError,
    };
    if (!kept) log.debug(about, 'a webhook was sent, and another server holds it by now');
    else if (outcome === undefined) log.debug(about, 'a webhook was broken off by the stop of this server');
    else if (next.state === 'failed') log.warn(about, 'a webhook failed for good');
    else
      log.debug(
        about,
        next.state === 'delivered' ? 'a webhook was delivered' : 'a webhook failed and is sent again',
      );
    if (kept && next.nextAt !== null) this.#agenda.add(next.nextAt);
  }

  readonly #postOverHttp: PostWebhook = async (url, body, headers, signal) => {
    const target = await orAborted(resolveTarget(url, this.#rules), signal);
    return postWebhook(target, body, headers, signal);
  };

  /** One attempt. Undefined where it was aborted because the server stops. */
  async #deliver(
    leased: LeasedDelivery,
    host: string,
    trace: TraceContext | undefined,
  ): Promise<AttemptOutcome | undefined> {
    const { id, accountId, url, body } = leased;
    const { options, secretOf } = this.#deps;
    if (this.#stopped) return undefined;
    const bytes = Buffer.from(body);
    const attempt = new AbortController();
    this.#attempts.add(attempt);
    const late = setTimeout(() => attempt.abort(), options.timeout);
    try {
      const headers = {
        'Content-Type': 'application/json',
        'User-Agent': 'Berth-Webhook/1',
        'X-Berth-Signature': signWebhook(secretOf(accountId), bytes),
        'X-Berth-Delivery': id,
        'X-Berth-Attempt': String(nextAttemptNumber(leased, options)),
        ...(trace !== undefined && { traceparent: formatTraceparent(trace) }),
      };
      const post = this.#deps.post ?? this.#postOverHttp;
      return { status: await post(url, bytes, headers, attempt.signal) };
    } catch (error) {
      if (!attempt.signal.aborted) return { error: reasonOf(error, host) };
      return this.#stopped ? undefined : { error: `no answer within ${options.timeout / 1000} seconds` };
    } finally {
      clearTimeout(late);
      this.#attempts.delete(attempt);
    }
  }
}

function deliverySpan(
  { endpointId, jobId, id }: LeasedDelivery,
  host: string,
  outcome: AttemptOutcome | undefined,
): SpanEnd {
  const { status, error } = { status: undefined, error: undefined, ...outcome };
  return {
    name: 'webhook',
    kind: 'client',
    attributes: {
      'berth.endpoint_id': endpointId,
      'berth.job_id': jobId,
      'berth.delivery_id': id,
      'server.address': host,
      ...(status !== undefined && { 'http.response.status_code': status }),
    },
    error: error ?? (status !== undefined && status >= 200 && status < 300 ? undefined : `status ${status}`),
  };
}

function hostOf({ url }: Delivery): string {
  return URL.parse(url)?.host ?? '';
}

function reasonOf(error: unknown, host: string): string {
  if (error instanceof TargetRefusedError) return error.message;
  const reason =
    error instanceof Error && 'code' in error
      ? String(error.code)
      : error instanceof Error
        ? error.message
        : String(error);
  return `${host} could not be reached: ${reason}`;
}

/** Work without a signal, such as a DNS query, continues ignored when its time is over. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
