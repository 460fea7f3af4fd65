import { randomBytes } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { HostState, OtherHost, ReachableHost } from '../engines/shared/instance-hosts.ts';
import type { ServerStore, ServerView } from '../store/server-store.ts';
import type { Config } from '../support/config/config.ts';
import type { Log } from '../support/log.ts';
import { readIfExists, writePrivateFile } from '../support/private-file.ts';
import { programVersion } from '../support/program-files.ts';
import type { AppContext } from './app-context.ts';
import type { ServerAddress } from './server-address.ts';
import type { Storage } from './storage.ts';

const HEARTBEAT_MS = 1_000;
/** A server that was silent for this long may be frozen: nobody waits long for its answer. */
const LATE_AFTER_MS = 1_500;
/** A server that was silent for this long is asked nothing. */
const AWAY_AFTER_MS = 4_000;
/** What runs on a machine whose servers were all silent for this long counts as lost. */
const HOST_LOST_AFTER_MS = 15_000;
const CLEAN_UP_EVERY_MS = 600_000;

/** The other servers on the same database. A server on SQLite has none. */
export class Peers {
  /** Identifies the data directory, and so the instances of this machine. */
  readonly hostId: string;
  readonly #store: ServerStore;
  readonly #server: string;
  readonly #config: Config;
  readonly #address: ServerAddress;
  readonly #log: Log;
  readonly #isLeading: () => boolean;
  readonly #startedAt: number;
  readonly #version = programVersion();
  #servers: ServerView[] = [];
  #heardAt = -Infinity;
  #cleanedUpAt = performance.now();
  #timer: NodeJS.Timeout | undefined;
  #beating: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor({ config, log, clock }: AppContext, { store }: Storage, address: ServerAddress) {
    this.#config = config;
    this.#store = store.servers;
    this.#server = store.server;
    this.#address = address;
    this.#log = log;
    this.#isLeading = () => store.leaderElection.isLeading();
    this.#startedAt = clock.now();
    this.hostId = config.database === '' ? 'single' : loadHostId(config.data);
  }

  start(): void {
    if (this.#config.database !== '') this.#beat();
  }

  /** The other ones that live. */
  get others(): ServerView[] {
    return this.#servers.filter(({ id, silentMs }) => id !== this.#server && silentMs < AWAY_AFTER_MS);
  }

  /** One server for each of the other machines that answer. */
  get otherHosts(): OtherHost[] {
    const found = new Map(
      this.others.map((server) => [server.hostId, { hostId: server.hostId, ...this.#reachable(server) }]),
    );
    found.delete(this.hostId);
    return [...found.values()];
  }

  hostState(hostId: string): HostState {
    if (hostId === this.hostId) return { state: 'here' };
    const servers = this.#servers.filter((server) => server.hostId === hostId);
    // What was heard is as old as the last answer of the database.
    if (performance.now() - this.#heardAt > AWAY_AFTER_MS) return { state: 'away' };
    const best = servers.toSorted((one, other) => one.silentMs - other.silentMs)[0];
    if (best === undefined || best.silentMs > HOST_LOST_AFTER_MS) return { state: 'lost' };
    return best.silentMs < AWAY_AFTER_MS ? { state: 'up', ...this.#reachable(best) } : { state: 'away' };
  }

  #reachable({ address, silentMs }: ServerView): ReachableHost {
    return { address, isLate: silentMs + performance.now() - this.#heardAt > LATE_AFTER_MS };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#beating;
  }

  #beat(): void {
    this.#beating = this.#heartbeat()
      .catch((error: unknown) => {
        if (!this.#isClosed)
          this.#log.debug({ err: error }, 'this server could not be announced to the others');
      })
      .finally(() => {
        if (!this.#isClosed) this.#timer = setTimeout(() => this.#beat(), HEARTBEAT_MS);
      });
  }

  async #heartbeat(): Promise<void> {
    this.#servers = await this.#store.heartbeat({
      id: this.#server,
      hostId: this.hostId,
      address: this.#config.internalUrl || internalAddress(this.#address.listeningOrigin, this.#config.host),
      version: this.#version,
      startedAt: this.#startedAt,
    });
    this.#heardAt = performance.now();
    if (!this.#isLeading() || performance.now() - this.#cleanedUpAt < CLEAN_UP_EVERY_MS) return;
    this.#cleanedUpAt = performance.now();
    await this.#store.cleanUp();
  }
}

/** Where it listens on all addresses, the first one that other machines can know. */
function internalAddress(origin: string, host: string): string {
  if (!['0.0.0.0', '::', '[::]'].includes(host)) return origin;
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((one) => one !== undefined && !one.internal && one.family === 'IPv4');
  if (outside === undefined) return origin;
  const url = new URL(origin);
  url.hostname = outside.address;
  return url.origin;
}

function loadHostId(data: string): string {
  const file = join(data, 'host-id');
  const kept = readIfExists(file)?.trim();
  if (kept) return kept;
  const fresh = randomBytes(8).toString('hex');
  writePrivateFile(file, `${fresh}\n`);
  return readIfExists(file)?.trim() ?? fresh;
}
