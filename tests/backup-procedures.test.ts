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
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import { codeBlocks } from './docs/code-blocks.ts';

/** The last commit before migration 26, in place of an old release. */
const OLD_VERSION = '6cbf955~1';
const page = readFileSync(new URL('../docs/backup.md', import.meta.url), 'utf8');

/** The shell blocks of a section, as lists of lines. */
function procedures(title: string): string[][] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${title}\n`)) ?? '';
  return codeBlocks(section).map(({ text }) => text.trim().split('\n'));
}

/** A computer with one installation of Berth, on which an operator follows the page. */
class Machine {
  readonly folder: string;
  program = BERTH_COMMAND;
  /** The one on PostgreSQL, if any. */
  database = '';
  server: ServerProcess | undefined;

  constructor(folder: string) {
    this.folder = folder;
  }

  path(name: string): string {
    return name.startsWith('/') ? join(this.folder, name) : join(this.folder, 'home', name);
  }

  /** `install`: what a comment about another version means here. */
  async follow(lines: readonly string[], install: () => void = () => undefined): Promise<void> {
    for (const line of lines) {
      const [command, ...words] = line.replace(/^npx /, '').split(' ');
      const args = words.map((word) =>
        word.startsWith('postgres:') ? this.database : /[/.]/.test(word) ? this.path(word) : word,
      );
      if (command === '#') {
        assert.match(line, /^# stop the server/);
        await this.stop();
        install();
      } else if (command === 'cp') execFileSync('cp', args);
      else if (args[0] === 'up') await this.start(args[args.indexOf('--data') + 1] ?? '');
      else await this.berth(args);
    }
  }

  async start(data: string): Promise<ServerProcess> {
    this.server = await startServerProcess(
      { data, url: this.database },
      {},
      ['--port', '0'],
      undefined,
      this.program,
    );
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

describe('the procedures of docs/backup.md', () => {
  let folder: string;
  let machine: Machine;
  let endpointId: string;
  let jobId: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'berth-procedures-'));
  });
  after(async () => {
    await machine.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(async () => {
    await machine?.stop();
    machine = new Machine(mkdtempSync(join(folder, 'machine-')));
    for (const name of ['home', 'var/lib', 'mnt/new'])
      mkdirSync(join(machine.folder, name), { recursive: true });
  });

  /** Starts a server, and has it keep a job. */
  const fill = async (): Promise<void> => {
    const { url, key } = await machine.start(machine.path('/var/lib/berth'));
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

  test('restoring with PostgreSQL, into an empty database', async (t) => {
    const [first, second] = [
      await createTestDatabase('postgres'),
      await createTestDatabase('postgres', { empty: true }),
    ];
    t.after(() => Promise.all([first.drop(), second.drop()]));
    machine.database = first.url;
    await fill();
    await machine.berth(['backup', machine.path('berth.tar')]);
    await machine.stop();
    machine.database = second.url;
    const [, lines = []] = procedures('Restore');
    assert.equal(lines.length, 2);
    await machine.follow(lines);
    await assertKept();
    await machine.stop();
  });

  test('moving with a backup: everything is on the new machine', async () => {
    await fill();
    const [lines = []] = procedures('Moving to another machine');
    assert.equal(lines.length, 4);
    // The new machine has the file, and nothing else of the old one.
    await machine.follow(lines, () => rmSync(machine.path('/var/lib/berth'), { recursive: true }));
    await assertKept();
  });

  test('moving by a copy of the folder, after the server has stopped', async () => {
    await fill();
    const [, lines = []] = procedures('Moving to another machine');
    assert.equal(lines.length, 3);
    await machine.follow(lines);
    await assertKept();
  });

  test('upgrade and downgrade', { skip: skipWithoutVersion(OLD_VERSION) }, async () => {
    const old = writeEarlierVersion(OLD_VERSION, join(machine.folder, 'old-version'));
    const installOld = (): void => void (machine.program = old);
    const installNew = (): void => void (machine.program = BERTH_COMMAND);

    installOld();
    await fill();
    const [upgrade = []] = procedures('Upgrade');
    assert.equal(upgrade.length, 3);
    await machine.follow(upgrade, installNew);
    await assertKept();

    const [downgrade = []] = procedures('Downgrade');
    assert.equal(downgrade.length, 3);
    await machine.stop();
    installOld();
    await assert.rejects(machine.start(machine.path('/var/lib/berth')), /newer Berth/);
    await machine.follow(downgrade, installOld);
    await assertKept();
  });
});
