import { isTurnedAway } from '../../resources/keys/gate.ts';
import { BerthError } from '../../support/errors.ts';
import { WorkerChannel } from './channel.ts';
import type { ChannelParts } from './channel.ts';
import { LastWords } from './last-words.ts';

/** A key may run out by itself, which nobody tells. */
const LOOK_EVERY_MS = 20_000;

/** Lets a worker in, or fails. */
export type Admit = () => Promise<unknown>;

/**
 * The channels that are open. One outlives the request that asked for it by days, so whoever came
 * with a key that is no longer good for it is cut off.
 */
export class Channels {
  readonly #open = new Map<WorkerChannel, Admit>();
  readonly #words = new LastWords();
  readonly #unwatch: () => void;
  readonly #timer: NodeJS.Timeout;
  #looking = Promise.resolve();

  /** `watchKeys`: tells whenever keys have changed. */
  constructor(watchKeys: (listener: () => void) => () => void) {
    this.#unwatch = watchKeys(() => this.#look());
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS).unref();
  }

  open(parts: Omit<ChannelParts, 'words'>, admit: Admit): void {
    const channel = new WorkerChannel({ ...parts, words: this.#words });
    this.#open.set(channel, admit);
    parts.socket.on('close', () => this.#open.delete(channel));
  }

  /** The server stops: the workers are sent elsewhere. */
  close(): void {
    this.#unwatch();
    clearInterval(this.#timer);
    for (const channel of this.#open.keys()) channel.goAway();
  }

  /** At one after the other, so that a key that many share is looked up once. */
  #look(): void {
    this.#looking = this.#looking.then(async () => {
      for (const [channel, admit] of [...this.#open]) if (await isSentAway(admit)) channel.cut();
    });
  }
}

/** Where nobody can say, it is not. */
async function isSentAway(admit: Admit): Promise<boolean> {
  try {
    await admit();
    return false;
  } catch (error) {
    return isTurnedAway(error) || (error instanceof BerthError && error.code === 'not-found');
  }
}
