import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { createTestDatabase, killInstances } from './test-database.ts';
import type { TestDatabase } from './test-database.ts';
import { startServerProcess } from './server-process.ts';
import type { ServerProcess } from './server-process.ts';
import { startTcpProxy } from './tcp-proxy.ts';
import type { TcpProxy } from './tcp-proxy.ts';
import { waitFor } from './wait-for.ts';

const ENV = { BERTH_RATE_LIMITS: 'off', BERTH_MASTER_KEY: '5b'.repeat(32), BERTH_DISK_RESERVE: '0' };

/** One of several servers, with its own data folder, port, and cable to the database. */
export interface ServerSlot {
  data: string;
  port: number;
  cable: TcpProxy;
  server: ServerProcess;
}

export interface SeveralServersOptions {
  env?: Record<string, string>;
  sharedCable?: boolean;
  /** Theirs; without it, a new one. */
  database?: TestDatabase;
  /** Another version of Berth to start. */
  program?: string;
}

/** Real servers on one PostgreSQL, each as if on a machine of its own. */
export class SeveralServers {
  readonly database: TestDatabase;
  readonly slots: ServerSlot[] = [];
  readonly #query: Client;
  readonly #env: Readonly<Record<string, string>>;

  private constructor(database: TestDatabase, query: Client, env: Readonly<Record<string, string>>) {
    this.database = database;
    this.#query = query;
    this.#env = { ...ENV, ...env };
  }

  /**
   * The first one leads. On a cluster they must name the database alike, since that identifies the
   * installation: they share one cable then.
   */
  static async start(
    count: number,
    { env = {}, sharedCable = false, database: given, program }: SeveralServersOptions = {},
  ): Promise<SeveralServers> {
    const database = given ?? (await createTestDatabase('postgres'));
    const query = new Client({ connectionString: database.url });
    query.on('error', () => undefined);
    await query.connect();
    const servers = new SeveralServers(database, query, env);
    for (let index = 0; index < count; index += 1) {
      const slot = {
        data: mkdtempSync(join(tmpdir(), 'berth-test-')),
        port: await freePort(),
        cable: (sharedCable ? servers.slots[0]?.cable : undefined) ?? (await startTcpProxy(database.url)),
      };
      servers.slots.push({ ...slot, server: await servers.#startSlot(slot, program) });
      if (index === 0) await servers.leader();
    }
    return servers;
  }

  /** The slot that leads now. */
  leader(): Promise<ServerSlot> {
    return waitFor('a server leads', async () => {
      const { rows } = await this.#query.query<{ address: string }>(
        `select address from servers join leadership on holder = servers.id
          where expires_at > extract(epoch from clock_timestamp()) * 1000`,
      );
      return this.slots.find(({ server }) => server.url === rows[0]?.address);
    });
  }

  /** Another one than this leads. */
  nextLeader(former: ServerSlot): Promise<ServerSlot> {
    return waitFor('another server leads', async () => {
      const leader = await this.leader();
      return leader !== former && leader;
    });
  }

  async followers(): Promise<ServerSlot[]> {
    const leader = await this.leader();
    return this.slots.filter((slot) => slot !== leader);
  }

  /** What a query answers with one number. */
  async number(query: string): Promise<number> {
    const { rows } = await this.#query.query<unknown[]>({ text: query, rowMode: 'array' });
    return Number(rows[0]?.[0]);
  }

  /** The same with one text. */
  async text(query: string): Promise<string> {
    const { rows } = await this.#query.query<unknown[]>({ text: query, rowMode: 'array' });
    return String(rows[0]?.[0]);
  }

  async execute(statement: string): Promise<void> {
    await this.#query.query(statement);
  }

  /** Why workers have ended so far. */
  async ends(): Promise<string> {
    const { rows } = await this.#query.query<{ id: string; reason: string | null }>(
      'select id, reason from workers where ended_at is not null',
    );
    return rows.map(({ id, reason }) => `${id}: ${reason ?? 'no longer needed'}`).join('\n');
  }

  /** With this version and the settings of the others, unless another program or other settings are named. */
  async restart(
    slot: ServerSlot,
    program?: string,
    env: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    slot.server = await this.#startSlot(slot, program, env);
  }

  #startSlot(
    { data, port, cable }: Omit<ServerSlot, 'server'>,
    program?: string,
    env: Readonly<Record<string, string>> = {},
  ): Promise<ServerProcess> {
    const flags = ['--port', String(port)];
    return startServerProcess({ data, url: cable.url }, { ...this.#env, ...env }, flags, undefined, program);
  }

  async stop(): Promise<void> {
    for (const { server, cable } of this.slots) {
      cable.thaw();
      server.process.kill('SIGCONT');
      await server.kill();
      await cable.disconnect();
    }
    await this.#query.end();
    await this.database.drop();
    for (const { data } of this.slots) {
      killInstances(data);
      rmSync(data, { recursive: true, force: true, maxRetries: 3 });
    }
  }
}

/** A port that stays the same when its server starts again: its workers come back to it. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
