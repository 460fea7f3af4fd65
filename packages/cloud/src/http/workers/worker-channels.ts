import type { OpenAccess, OpenAccesses } from '../../auth/open-access.ts';
import { WorkerChannel } from './worker-channel.ts';
import type { WorkerChannelDeps } from './worker-channel.ts';
import { ChannelActivity } from './channel-activity.ts';

/**
 * The open channels. A channel stays open for days after its request, so a worker whose key is
 * revoked later is disconnected.
 */
export class WorkerChannels {
  readonly #accesses: OpenAccesses;
  readonly #open = new Set<WorkerChannel>();
  readonly #activity = new ChannelActivity();

  constructor(accesses: OpenAccesses) {
    this.#accesses = accesses;
  }

  open(deps: Omit<WorkerChannelDeps, 'activity'>, access: Omit<OpenAccess, 'revoke'>): void {
    const channel = new WorkerChannel({ ...deps, activity: this.#activity });
    this.#open.add(channel);
    const unwatch = this.#accesses.watch({ ...access, revoke: () => channel.disconnect() });
    deps.socket.on('close', () => {
      this.#open.delete(channel);
      unwatch();
    });
  }

  /** The server stops: the workers are sent to other servers. */
  close(): void {
    for (const channel of this.#open) channel.sendGoAway();
  }
}
