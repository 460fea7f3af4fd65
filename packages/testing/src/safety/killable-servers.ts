import type { TestDatabase } from '../test-database.ts';
import { startServerProcess } from '../server-process.ts';
import type { ServerProcess } from '../server-process.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { HistoryEvent } from './job-history.ts';
import { monotonicMs } from './job-history.ts';

const ENV = { BERTH_RATE_LIMITS: 'off', BERTH_LOG_LEVEL: 'warn', BERTH_MASTER_KEY: '5a'.repeat(32) };

/**
 * Real servers on one database, to be killed and started again. Whoever asks for an address gets one of those
 * that are up.
 */
export class KillableServers {
  readonly #database: TestDatabase;
  /** The data folder of each. */
  readonly #folders: readonly string[];
  readonly #chance: SeededRandom;
  readonly #history: HistoryEvent[];
  readonly #up: (ServerProcess | undefined)[];
  /** Where each was last: while none is up, a dead address is as good as any. */
  readonly #addresses: string[] = [];
  readonly #problems: string[] = [];
  kills = 0;

  constructor(
    database: TestDatabase,
    folders: readonly string[],
    chance: SeededRandom,
    history: HistoryEvent[],
  ) {
    this.#database = database;
    this.#folders = folders;
    this.#chance = chance;
    this.#history = history;
    this.#up = folders.map(() => undefined);
  }

  async start(index: number): Promise<ServerProcess> {
    const server = await startServerProcess(
      { data: this.#folders[index] ?? '', url: this.#database.url },
      ENV,
    );
    this.#up[index] = server;
    this.#addresses[index] = server.url;
    return server;
  }

  /** As a power cut would. */
  async kill(index: number): Promise<void> {
    const server = this.#up[index];
    if (server === undefined) return;
    this.#up[index] = undefined;
    this.#history.push({ kind: 'disturbance', what: `server ${index} killed`, at: monotonicMs() });
    this.kills += 1;
    const ended = server.process.exitCode;
    await server.kill();
    this.#examine(server, ended);
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.#up.map(async (server, index) => {
        if (server === undefined) return;
        this.#up[index] = undefined;
        await server.stop();
        this.#examine(server, null);
      }),
    );
  }

  /** The address of one that is up. */
  url = (): string => {
    const up = this.#up.flatMap((server) => (server === undefined ? [] : [server.url]));
    return this.#chance.pick(up) ?? this.#chance.pick(this.#addresses) ?? '';
  };

  /** What they met that they should not have: errors in their logs, and ends that nobody asked for. */
  defects(): readonly string[] {
    return this.#problems;
  }

  #examine(server: ServerProcess, ended: number | null): void {
    if (ended !== null)
      this.#problems.push(`a server ended by itself with ${ended}: ${server.log().slice(-2000)}`);
    this.#problems.push(
      ...server
        .log()
        .split('\n')
        .filter((line) => /"level":"(error|fatal)"/.test(line)),
    );
  }
}
