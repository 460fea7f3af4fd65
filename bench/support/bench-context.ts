import type { BerthProcess } from './berth-process.ts';
import { createEndpoint, startBerth } from './berth-process.ts';
import { repositoryPath } from './repository-path.ts';
import type { Postgres } from './bench-postgres.ts';
import { startPostgres } from './bench-postgres.ts';
import { startProgram } from './child-program.ts';
import type { PythonSdk } from './python-sdk.ts';
import { pythonSdk } from './python-sdk.ts';
import type { Report } from './bench-report.ts';
import type { CleanupScope } from './cleanup-scope.ts';
import type { Tools } from './installed-tools.ts';

export type Database = 'SQLite' | 'PostgreSQL';

export interface BenchContextOptions {
  report: Report;
  tools: Tools;
  cleanup: CleanupScope;
  rounds: number;
  /** Of one round. */
  seconds: number;
  /** Of random kills, and of a full disk. */
  minutes: number;
  /** The scale of a large benchmark; below 1 to try it. */
  scale: number;
  /** The folder of another checkout, to compare this one with. */
  other: string | undefined;
}

/** What every part works with. */
export class BenchContext {
  readonly report: Report;
  readonly tools: Tools;
  readonly cleanup: CleanupScope;
  readonly rounds: number;
  readonly seconds: number;
  readonly minutes: number;
  readonly scale: number;
  readonly other: string | undefined;
  #postgres: Promise<Postgres> | undefined;
  #pythonSdk: Promise<PythonSdk> | undefined;
  #databases = 0;

  constructor({ report, tools, cleanup, rounds, seconds, minutes, scale, other }: BenchContextOptions) {
    this.report = report;
    this.tools = tools;
    this.cleanup = cleanup;
    this.rounds = rounds;
    this.seconds = seconds;
    this.minutes = minutes;
    this.scale = scale;
    this.other = other;
  }

  /** One PostgreSQL for the whole run, started on first use. */
  postgres(): Promise<Postgres> {
    this.#postgres ??= startPostgres().then((postgres) => {
      this.cleanup.defer(() => postgres.stop());
      return postgres;
    });
    return this.#postgres;
  }

  /** Installed on the first run, which takes a minute. */
  pythonSdk(): Promise<PythonSdk> {
    this.#pythonSdk ??= pythonSdk();
    return this.#pythonSdk;
  }

  /** An empty database, or a copy of another; gone with the scope. */
  async database(scope: CleanupScope, template?: string): Promise<{ name: string; url: string }> {
    const postgres = await this.postgres();
    this.#databases += 1;
    const name = `bench_${this.#databases}`;
    const url = await postgres.database(name, template);
    scope.defer(() => postgres.drop(name));
    return { name, url };
  }

  /** A running Berth with one endpoint, on data of its own. */
  async berth(
    scope: CleanupScope,
    database: Database,
    env: Record<string, string> = {},
  ): Promise<BerthProcess & { endpointId: string }> {
    const storage = {
      data: scope.folder('data'),
      database: database === 'SQLite' ? '' : (await this.database(scope)).url,
    };
    const berth = await startBerth({ ...storage, env });
    scope.defer(berth.stop);
    return { ...berth, endpointId: await createEndpoint(berth, 'bench') };
  }

  /** The bare HTTP server that others are measured by. */
  bareHttpServer(scope: CleanupScope): Promise<{ url: string; pid: number }> {
    return this.#bare(scope, 'bare-http-server');
  }

  /** The bare HTTP server that holds polls. */
  bareLongPollServer(scope: CleanupScope): Promise<{ url: string; pid: number }> {
    return this.#bare(scope, 'bare-long-poll-server');
  }

  async #bare(scope: CleanupScope, name: string): Promise<{ url: string; pid: number }> {
    const bare = await startProgram({
      command: process.execPath,
      args: [repositoryPath(`bench/peers/${name}.ts`)],
      ready: /up at (\S+)$/,
    });
    scope.defer(bare.stop);
    return { url: `${bare.match[1]}/`, pid: bare.pid };
  }
}
