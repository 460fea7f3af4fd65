import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { BerthError } from '../../support/errors.ts';
import { GroupCommit, NO_PARTNER } from './group-commit.ts';
import type { Disk } from './wal-sync.ts';

const NO_DISK: Disk = { sync: () => undefined, syncBeside: () => Promise.resolve(), pending: undefined };

function fixture(): { connection: DatabaseSync; group: GroupCommit; commits: () => number; names: () => unknown[] } {
  const connection = new DatabaseSync(':memory:');
  connection.exec('create table things (name text primary key)');
  const group = new GroupCommit(connection, NO_DISK, (error) => (error instanceof Error ? error : new Error(String(error))));
  let commits = 0;
  group.partner = { ...NO_PARTNER, afterCommit: () => (commits += 1) };
  return { connection, group, commits: () => commits, names: () => connection.prepare('select name from things order by rowid').all().map((row) => row['name']) };
}

const add = (group: GroupCommit, connection: DatabaseSync, name: string) => (): string => {
  group.begin();
  connection.prepare('insert into things values (?)').run(name);
  return name;
};

describe('work of one turn', () => {
  test('shares a commit, and each piece gets its own answer', async () => {
    const { connection, group, commits, names } = fixture();
    const answers = await Promise.all(['a', 'b', 'c'].map((name) => group.run(add(group, connection, name))));
    assert.deepEqual([answers, commits(), names()], [['a', 'b', 'c'], 1, ['a', 'b', 'c']]);
    await group.run(add(group, connection, 'd'));
    assert.equal(commits(), 2);
  });

  test('is answered after the commit, never before', async () => {
    const { connection, group } = fixture();
    let answered = false;
    const answer = group.run(add(group, connection, 'a')).then(() => (answered = true));
    group.partner = { ...NO_PARTNER, beforeCommit: () => assert.equal(answered, false) };
    assert.equal(connection.isTransaction, false);
    await answer;
    assert.equal(connection.isTransaction, false);
  });

  test('that comes last sees what came with it', async () => {
    const { connection, group } = fixture();
    const looked = group.runLast(() => connection.prepare('select count(*) as count from things').get()?.['count']);
    await group.run(add(group, connection, 'a'));
    assert.equal(await looked, 1);
  });

  test('that cannot be done fails by itself: what came with it is kept', async () => {
    const { connection, group, names } = fixture();
    let rolledBack = 0;
    group.partner = { ...NO_PARTNER, afterRollback: () => (rolledBack += 1) };
    await group.run(add(group, connection, 'a'));
    const outcomes = await Promise.allSettled([group.run(add(group, connection, 'b')), group.run(add(group, connection, 'a')), group.run(add(group, connection, 'c'))]);
    assert.deepEqual(outcomes.map(({ status }) => status), ['fulfilled', 'rejected', 'fulfilled']);
    assert.deepEqual([names(), rolledBack, connection.isTransaction], [['a', 'b', 'c'], 2, false]);
  });

  test('fails as a whole where the database is away: nothing is kept, everyone is told, and the next turn goes on', async () => {
    const { connection, group, names } = fixture();
    let away = true;
    group.partner = {
      ...NO_PARTNER,
      beforeCommit: () => {
        if (away) throw new BerthError('unavailable', 'the disk is full');
      },
    };
    const outcomes = await Promise.allSettled([group.run(add(group, connection, 'a')), group.run(add(group, connection, 'b'))]);
    assert.deepEqual(outcomes.map(({ status }) => status), ['rejected', 'rejected']);
    assert.deepEqual([names(), connection.isTransaction], [[], false]);
    away = false;
    await group.run(add(group, connection, 'c'));
    assert.deepEqual(names(), ['c']);
  });

  test('that is large waits for the disk beside everything else, and what is read meanwhile waits with it', async () => {
    const { connection } = fixture();
    const synced = Promise.withResolvers<void>();
    const disk: { -readonly [name in keyof Disk]: Disk[name] } = {
      sync: () => assert.fail('everything else would wait'),
      syncBeside: () => (disk.pending = synced.promise),
      pending: undefined,
    };
    const group = new GroupCommit(connection, disk, (error) => error as Error);
    const told: string[] = [];
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const added = Promise.all(names.map((name) => group.run(add(group, connection, name)))).then(() => told.push('added'));
    await new Promise((resolve) => setImmediate(resolve));
    const looked = group.look(() => connection.prepare('select count(*) as count from things').get()?.['count']).then((count) => told.push(`looked ${String(count)}`));
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(told, []);
    synced.resolve();
    await Promise.all([added, looked]);
    assert.deepEqual(told.sort(), ['added', 'looked 6']);
  });

  test('that nobody waits for and that the disk did not take is not told to anybody who reads, until it has', async () => {
    const connection = new DatabaseSync(':memory:');
    connection.exec('create table things (name text primary key)');
    let works = false;
    let syncs = 0;
    const syncBeside = async (): Promise<void> => {
      syncs += 1;
      if (!works) throw new Error('the disk is away');
    };
    const group = new GroupCommit(connection, { ...NO_DISK, syncBeside }, (error) => error as Error);
    await group.runUntold(add(group, connection, 'a'));
    while (syncs === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    for (let tries = 0; tries < 2; tries += 1) await assert.rejects(group.read(() => 'a'), /the disk is away/);
    works = true;
    assert.equal(await group.read(() => 'a'), 'a');
  });

  test('is refused once the store has closed', async () => {
    const { connection, group } = fixture();
    group.close();
    connection.close();
    await assert.rejects(group.run(() => 1), /the server stops/);
  });

  test('can be committed at once, for a store that closes', () => {
    const { connection, group, names } = fixture();
    void group.run(add(group, connection, 'a'));
    group.flush();
    assert.deepEqual(names(), ['a']);
    group.flush();
  });
});

describe('notes', () => {
  test('are written out before anybody looks; where that fails, whoever looks is told, and whoever reads something else is not', async () => {
    const { connection, group, names } = fixture();
    const notes = ['a'];
    let isFull = true;
    group.partner = {
      ...NO_PARTNER,
      get hasNotes() {
        return notes.length > 0;
      },
      writeOut: () => {
        for (const name of notes) add(group, connection, name)();
        if (isFull) throw new BerthError('unavailable', 'the disk is full');
        notes.pop();
      },
    };
    await assert.rejects(group.look(names), /the disk is full/);
    assert.deepEqual(await group.read(names), []);
    isFull = false;
    assert.deepEqual(await group.look(names), ['a']);
  });
});
