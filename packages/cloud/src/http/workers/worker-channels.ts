import { isAccessError } from '../../auth/authenticator.ts';
import type { CloudEventBus } from '../../domain/events.ts';
import { BerthError } from '../../support/errors.ts';
import { WorkerChannel } from './worker-channel.ts';
import type { WorkerChannelDeps } from './worker-channel.ts';
import { ChannelActivity } from './channel-activity.ts';

/** A key may expire, for which there is no event. */
const REAUTHORIZE_MS = 20_000;

/** Rejects if the worker has no access. */
export type Authorize = () => Promise<unknown>;

/**
 * The open channels. A channel stays open for days after its request, so a worker whose key is
 * revoked later is disconnected.
 */
export class WorkerChannels {
  readonly #open = new Map<WorkerChannel, Authorize>();
  readonly #activity = new ChannelActivity();
  readonly #unsubscribe: () => void;
  readonly #timer: NodeJS.Timeout;
  #checking = Promise.resolve();

  constructor(events: CloudEventBus) {
    this.#unsubscribe = events.subscribe('keys.changed', () => this.#checkAccess());
    this.#timer = setInterval(() => this.#checkAccess(), REAUTHORIZE_MS).unref();
  }

  open(deps: Omit<WorkerChannelDeps, 'activity'>, authorize: Authorize): void {
    const channel = new WorkerChannel({ ...deps, activity: this.#activity });
    this.#open.set(channel, authorize);
    deps.socket.on('close', () => this.#open.delete(channel));
  }

  /** The server stops: the workers are sent to other servers. */
  close(): void {
    this.#unsubscribe();
    clearInterval(this.#timer);
    for (const channel of this.#open.keys()) channel.sendGoAway();
  }

  /** One after the other, so that a key that many share is read once. */
  #checkAccess(): void {
    this.#checking = this.#checking.then(async () => {
      for (const [channel, authorize] of [...this.#open])
        if (await isRevoked(authorize)) channel.disconnect();
    });
  }
}

/** If that cannot be found out, the channel stays. */
async function isRevoked(authorize: Authorize): Promise<boolean> {
  try {
    await authorize();
    return false;
  } catch (error) {
    return isAccessError(error) || (error instanceof BerthError && error.code === 'not-found');
  }
}
