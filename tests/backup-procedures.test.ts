import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { runBerth, BERTH_COMMAND } from '../packages/testing/src/berth-command.ts';
import { skipWithoutVersion, writeEarlierVersion } from '../packages/testing/src/earlier-version.ts';
import { createQueueEndpoint, queueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { createTestDatabase, DATABASES } from '../packages/testing/src/test-database.ts';
import type { DatabaseKind, TestDatabase } from '../packages/testing/src/test-database.ts';
import { codeBlocks } from './docs/code-blocks.ts';

/** The last commit before migration 26, in place of an old release. */
const OLD_VERSION = '6cbf955~1';
/** The databases that the page names. */
const DATABASE = 'postgres://user:password@host/berth';
const NEW_DATABASE = 'postgres://user:password@new-host/berth';
const page = readFileSync(new URL('../docs/backup.md', import.meta.url), 'utf8');

/** Why the tools of PostgreSQL here cannot copy this database; undefined if they can. */
function dumpProblem(url: string): string | undefined {
  try {
    execFileSync('pg_dump', ['--schema-only', '--file', '/dev/null', url], { stdio: 'pipe' });
    return undefined;
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: Buffer };
    return stderr?.toString() || message;
  }
}

/** The shell blocks of a section for this kind of database, as lists of lines. */
function procedures(title: string, kind: DatabaseKind): string[][] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${title}\n`)) ?? '';
  const blocks = codeBlocks(section).map(({ text }) => text.trim());
  return blocks
    .filter((text) => text.includes('postgres://') === (kind === 'postgres'))
    .map((text) => text.split('\n'));
}

/** A computer with one installation of Berth, on which an operator follows the page. */
class Machine {
  readonly folder: string;
  /** What the databases of the page are here. */
  readonly databases = new Map<string, string>();
  program = BERTH_COMMAND;
  server: ServerProcess | undefined;

  constructor(folder: string) {
    this.folder = folder;
  }

  path(name: string): string {
    return name.startsWith('/') ? join(this.folder, name) : join(this.folder, 'home', name);
  }

  #argument(word: string): string {
    if (word.startsWith('postgres://')) return this.databases.get(word) ?? assert.fail(word);
    return /[/.]/.test(word) || word === 'restored' ? this.path(word) : word;
  }

  /** `install`: what a comment about another version means here. */
  async follow(
    lines: readonly string[],
    install: () => void | Promise<void> = () => undefined,
  ): Promise<void> {
    for (const line of lines) {
      const [command = '', ...words] = line.replace(/^npx /, '').split(' ');
      const args = words.map((word) => this.#argument(word));
      if (command === '#') {
        assert.match(line, /^# stop the server/);
        await this.stop();
        await install();
      } else if (['cp', 'pg_dump', 'psql'].includes(command)) execFileSync(command, args);
      else if (args[0] === 'up') {
        assert.deepEqual([args[1], args[3] ?? '--database'], ['--data', '--database']);
        await this.start(args[2] ?? '', args[4]);
      } else await this.berth(args);
    }
  }

  async start(data: string, database = ''): Promise<ServerProcess> {
    const flags = ['--port', '0', ...(database === '' ? [] : ['--database', database])];
    this.server = await startServerProcess({ data, url: '' }, {}, flags, undefined, this.program);
    return this.server;
  }

  async stop(): Promise<void> {
    await this.server?.stop();
    this.server = undefined;
  }

  async berth(args: string[]): Promise<void> {
    const { server } = this;
    const ran = await runBerth(
      args,
      server === undefined ? {} : { BERTH_URL: server.url, BERTH_API_KEY: server.key },
      this.program,
    );
    assert.equal(ran.code, 0, `berth ${args.join(' ')}: ${ran.stderr}`);
  }
}

for (const kind of DATABASES)
  describe(`the procedures of docs/backup.md, on ${kind}`, () => {
    let folder: string;
    let machine: Machine;
    let endpointId: string;
    let jobId: string;
    const made: TestDatabase[] = [];

    /** On PostgreSQL, what the page calls so is an empty database from now on. */
    const createDatabase = async (name: string): Promise<void> => {
      if (kind === 'sqlite') return;
      const database = await createTestDatabase(kind, { empty: true });
      made.push(database);
      machine.databases.set(name, database.url);
    };

    before(() => {
      folder = mkdtempSync(join(tmpdir(), 'berth-procedures-'));
    });
    after(async () => {
      await machine.stop();
      for (const database of made) await database.drop();
      rmSync(folder, { recursive: true, force: true });
    });
    beforeEach(async () => {
      await machine?.stop();
      machine = new Machine(mkdtempSync(join(folder, 'machine-')));
      await createDatabase(DATABASE);
      for (const name of ['home', 'var/lib', 'mnt/new'])
        mkdirSync(join(machine.folder, name), { recursive: true });
    });

    const start = (): Promise<ServerProcess> =>
      machine.start(machine.path('/var/lib/berth'), machine.databases.get(DATABASE));

    /** Starts a server, and has it keep a job. */
    const fill = async (): Promise<void> => {
      const { url, key } = await start();
      const jobs = await createQueueEndpoint(url, key);
      endpointId = jobs.id;
      jobId = await jobs.run({ text: 'kept' });
    };
    const assertKept = async (): Promise<void> => {
      const { server } = machine;
      assert.ok(server);
      const jobs = queueEndpointClient(server.client(), endpointId, server.key);
      assert.equal((await jobs.status(jobId)).status, 'IN_QUEUE');
      assert.ok(await jobs.run({}));
    };
    /** A new machine has the file of the backup, and nothing else of the old one. */
    const replaceMachine = async (): Promise<void> => {
      rmSync(machine.path('/var/lib/berth'), { recursive: true });
      await createDatabase(DATABASE);
    };

    test('backup and restore', async () => {
      await fill();
      const [backups = []] = procedures('Backup', 'sqlite');
      assert.equal(backups.length, 3);
      await machine.follow(backups.map((line) => line.replace(/ +#.*/, '')));
      await machine.stop();
      await replaceMachine();
      const [lines = []] = procedures('Restore', kind);
      await machine.follow(lines);
      if (kind === 'sqlite') await machine.follow(['npx berth up --data restored']);
      else assert.equal(lines.length, 2);
      await assertKept();
    });

    test('moving with a backup: everything is on the new machine', async () => {
      await fill();
      const [lines = []] = procedures('Moving to another machine', kind);
      assert.equal(lines.length, 4);
      await machine.follow(lines, replaceMachine);
      await assertKept();
    });

    test('moving by a copy of the folder, after the server has stopped', async () => {
      await fill();
      const [, lines = []] = procedures('Moving to another machine', kind);
      assert.equal(lines.length, 3);
      await machine.follow(lines);
      await assertKept();
    });

    test('moving by copies of the folder and of the database', async (context) => {
      const [, , lines] = procedures('Moving to another machine', kind);
      if (kind === 'sqlite') return assert.equal(lines, undefined, 'they are one');
      const problem = dumpProblem(machine.databases.get(DATABASE) ?? '');
      if (problem !== undefined) return context.skip(problem);
      await fill();
      await createDatabase(NEW_DATABASE);
      assert.equal(lines?.length, 5);
      await machine.follow(lines);
      await assertKept();
    });

    test('upgrade and downgrade', { skip: skipWithoutVersion(OLD_VERSION) }, async () => {
      const old = writeEarlierVersion(OLD_VERSION, join(machine.folder, 'old-version'));
      const installOld = (): void => void (machine.program = old);
      const installNew = (): void => void (machine.program = BERTH_COMMAND);

      installOld();
      await fill();
      const [upgrade = []] = procedures('Upgrade', kind);
      assert.equal(upgrade.length, 3);
      await machine.follow(upgrade, installNew);
      await assertKept();

      const [downgrade = []] = procedures('Downgrade', kind);
      assert.equal(downgrade.length, 3);
      await machine.stop();
      installOld();
      await assert.rejects(start(), /newer Berth/);
      await machine.follow(downgrade, installOld);
      await assertKept();
    });
  });
