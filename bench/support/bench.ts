import type { Berth } from './berth.ts';
import { createEndpoint, startBerth } from './berth.ts';
import { inRepository } from './paths.ts';
import type { Postgres } from './postgres.ts';
import { startPostgres } from './postgres.ts';
import { startProgram } from './program.ts';
import type { PythonSdk } from './python-sdk.ts';
import { pythonSdk } from './python-sdk.ts';
import type { Report } from './report.ts';
import type { Stage } from './stage.ts';
import type { Tools } from './tools.ts';

export type Database = 'SQLite' | 'PostgreSQL';

export interface BenchOptions {
  report: Report;
  tools: Tools;
  stage: Stage;
  rounds: number;
  /** Of one round. */
  seconds: number;
}

/** What every part works with. */
export class Bench {
  readonly report: Report;
  readonly tools: Tools;
  readonly stage: Stage;
  readonly rounds: number;
  readonly seconds: number;
  #postgres: Promise<Postgres> | undefined;
  #pythonSdk: Promise<PythonSdk> | undefined;
  #databases = 0;

  constructor({ report, tools, stage, rounds, seconds }: BenchOptions) {
    this.report = report;
    this.tools = tools;
    this.stage = stage;
    this.rounds = rounds;
    this.seconds = seconds;
  }

  /** One PostgreSQL for the whole run, started by whoever needs it first. */
  postgres(): Promise<Postgres> {
    this.#postgres ??= startPostgres().then((postgres) => {
      this.stage.onEnd(() => postgres.stop());
      return postgres;
    });
    return this.#postgres;
  }

  /** Installed on the first run, which takes a minute. */
  pythonSdk(): Promise<PythonSdk> {
    this.#pythonSdk ??= pythonSdk();
    return this.#pythonSdk;
  }

  /** An empty database, or a copy of another; gone with the stage. */
  async database(stage: Stage, template?: string): Promise<{ name: string; url: string }> {
    const postgres = await this.postgres();
    this.#databases += 1;
    const name = `bench_${this.#databases}`;
    const url = await postgres.database(name, template);
    stage.onEnd(() => postgres.drop(name));
    return { name, url };
  }

  /** A running Berth with one endpoint, on data of its own. */
  async berth(stage: Stage, database: Database): Promise<Berth & { endpointId: string }> {
    const place = {
      data: stage.folder('data'),
      database: database === 'SQLite' ? '' : (await this.database(stage)).url,
    };
    const berth = await startBerth(place);
    stage.onEnd(berth.stop);
    return { ...berth, endpointId: await createEndpoint(berth, 'bench') };
  }

  /** The bare HTTP server that others are measured by. */
  echo(stage: Stage): Promise<{ url: string; pid: number }> {
    return this.#bare(stage, 'echo');
  }

  /** The bare HTTP server that holds polls. */
  heldPolls(stage: Stage): Promise<{ url: string; pid: number }> {
    return this.#bare(stage, 'held-polls');
  }

  async #bare(stage: Stage, name: string): Promise<{ url: string; pid: number }> {
    const bare = await startProgram({
      command: process.execPath,
      args: [inRepository(`bench/peers/${name}.ts`)],
      ready: /up at (\S+)$/,
    });
    stage.onEnd(bare.stop);
    return { url: `${bare.match[1]}/`, pid: bare.pid };
  }
}
