import type { Consumer, Delivery, JobSource } from '../job-source.ts';
import type { Job } from '../handler.ts';
import type { Log } from '../log.ts';
import { messageOf } from '../failure.ts';
import type { Pace } from '../pace.ts';
import type { Addresses } from './addresses.ts';
import { PublicDelivery } from './delivery.ts';
import { HttpClient } from './http-client.ts';
import { ping } from './pings.ts';
import type { Polling } from './polling.ts';
import { Posts } from './posts.ts';
import { followStops } from './stops.ts';
import { Takes } from './takes.ts';

export interface PublicSourceParts {
  addresses: Addresses;
  apiKey: string;
  pingMs: number;
  log: Log;
  pace: Pace;
}

/** What is asked all the time while jobs come this way. It ends in two steps: first the takes, then all the rest. */
interface Polls {
  takes: Takes;
  listening: AbortController;
}

/** Jobs by the public worker protocol: requests that the server holds until there is something to say. */
export class PublicSource implements JobSource {
  readonly #parts: PublicSourceParts;
  readonly #http: HttpClient;
  readonly #posts: Posts;
  #polls: Polls | undefined;

  constructor(parts: PublicSourceParts) {
    this.#parts = parts;
    this.#http = new HttpClient(parts.apiKey, parts.pace.begunAnswer);
    this.#posts = new Posts({ ...parts, http: this.#http });
  }

  /** The way over HTTP for a job that came otherwise. */
  deliveryOf(job: Job): Delivery {
    return new PublicDelivery(job, this.#posts);
  }

  open(consumer: Consumer): void {
    const polling: Polling = { ...this.#parts, http: this.#http, posts: this.#posts, consumer };
    const listening = new AbortController();
    void ping(polling, listening.signal);
    void followStops(polling, listening.signal);
    this.#polls = { takes: new Takes(polling), listening };
  }

  roomShrank(): void {
    void this.#polls?.takes.roomShrank();
  }

  roomGrew(): void {
    this.#polls?.takes.roomGrew();
  }

  async leave(): Promise<void> {
    this.#posts.leave();
    await this.#polls?.takes.end();
  }

  /** Takes, pings and asks no more, for jobs now come another way. What is still to be posted is posted. */
  async rest(): Promise<void> {
    const polls = this.#polls;
    this.#polls = undefined;
    await polls?.takes.end();
    polls?.listening.abort();
  }

  async close(): Promise<void> {
    await this.leave();
    this.#polls?.listening.abort();
    this.#http.close();
  }

  async reportUnhealthy(check: string, reason: string): Promise<void> {
    const address = this.#parts.addresses.unhealthy(check, reason);
    if (address === undefined) return;
    try {
      await this.#http.ask(address, { silenceMs: this.#parts.pace.unhealthyReport });
    } catch (error) {
      this.#parts.log.warn(`The failed check could not be reported: ${messageOf(error)}`);
    }
  }
}
