import { isAccessError } from '../../auth/authenticator.ts';
import type { CloudEventBus } from '../../domain/events.ts';
import { BerthError } from '../../support/errors.ts';
import { WorkerChannel } from './worker-channel.ts';
import type { WorkerChannelDeps } from './worker-channel.ts';
import { ChannelActivity } from './channel-activity.ts';

/** A key may run out by itself, which nobody tells. */
const REAUTHORIZE_MS = 20_000;

/** Lets a worker in, or fails. */
export type Authorize = () => Promise<unknown>;

/**
 * The channels that are open. One outlives the request that asked for it by days, so whoever came
 * with a key that is no longer good for it is cut off.
 */
export class WorkerChannels {
  readonly #open = new Map<WorkerChannel, Authorize>();
  readonly #words = new ChannelActivity();
  readonly #unwatch: () => void;
  readonly #timer: NodeJS.Timeout;
  #looking = Promise.resolve();

  constructor(events: CloudEventBus) {
    this.#unwatch = events.subscribe('keys.changed', () => this.#look());
    this.#timer = setInterval(() => this.#look(), REAUTHORIZE_MS).unref();
  }

  open(deps: Omit<WorkerChannelDeps, 'words'>, admit: Authorize): void {
    const channel = new WorkerChannel({ ...deps, words: this.#words });
    this.#open.set(channel, admit);
    deps.socket.on('close', () => this.#open.delete(channel));
  }

  /** The server stops: the workers are sent elsewhere. */
  close(): void {
    this.#unwatch();
    clearInterval(this.#timer);
    for (const channel of this.#open.keys()) channel.sendGoAway();
  }

  /** At one after the other, so that a key that many share is looked up once. */
  #look(): void {
    this.#looking = this.#looking.then(async () => {
      for (const [channel, admit] of [...this.#open]) if (await isRevoked(admit)) channel.disconnect();
    });
  }
}

/** Where nobody can say, it is not. */
async function isRevoked(admit: Authorize): Promise<boolean> {
  try {
    await admit();
    return false;
  } catch (error) {
    return isAccessError(error) || (error instanceof BerthError && error.code === 'not-found');
  }
}
