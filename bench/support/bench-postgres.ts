import pg from 'pg';
import { startTestPostgres } from '../../packages/testing/src/postgres-server.mjs';

export interface Postgres {
  url: string;
  version: string;
  /** Makes a database, empty or as a copy of another that nobody uses now; its URL. */
  database(name: string, template?: string): Promise<string>;
  drop(name: string): Promise<void>;
  stop(): Promise<void>;
}

/** PostgreSQL with its default, durable settings; it is checked that they are. */
export async function startPostgres(): Promise<Postgres> {
  const { url, stop } = await startTestPostgres();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const setting = async (name: string): Promise<string> =>
    String(((await client.query(`show ${name}`)).rows[0] as Record<string, unknown>)[name]);
  for (const name of ['fsync', 'synchronous_commit']) {
    const value = await setting(name);
    if (value !== 'on')
      throw new Error(`this PostgreSQL has ${name} = ${value}; a comparison of durable queues needs it on`);
  }
  return {
    url,
    version: (await setting('server_version')).split(' ')[0] ?? '',
    database: async (name, template = 'template1') => {
      await client.query(`create database ${name} template ${template}`);
      const made = new URL(url);
      made.pathname = `/${name}`;
      return made.href;
    },
    drop: async (name) => {
      await client.query(`drop database if exists ${name} with (force)`);
    },
    stop: async () => {
      await client.end();
      await stop();
    },
  };
}
