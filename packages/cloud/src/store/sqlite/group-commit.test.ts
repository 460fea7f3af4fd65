import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { BerthError } from '../../support/errors.ts';
import { GroupCommit } from './group-commit.ts';
import type { DiskSync } from './wal-sync.ts';

const NO_DISK: DiskSync = {
  sync: () => undefined,
  syncInBackground: () => Promise.resolve(),
  pending: undefined,
  hasFailed: false,
};

function fixture(): {
  connection: DatabaseSync;
  group: GroupCommit;
  commits: () => number;
  names: () => unknown[];
} {
  const connection = new DatabaseSync(':memory:');
  connection.exec('create table things (name text primary key)');
  const group = new GroupCommit(connection, NO_DISK, (error) =>
    error instanceof Error ? error : new Error(String(error)),
  );
  let commits = 0;
  group.hooks = { beforeCommit: () => (commits += 1), afterRollback: () => undefined };
  return {
    connection,
    group,
    commits: () => commits,
    names: () =>
      connection
        .prepare('select name from things order by rowid')
        .all()
        .map((row) => row['name']),
  };
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
    group.hooks = { ...group.hooks, beforeCommit: () => assert.equal(answered, false) };
    assert.equal(connection.isTransaction, false);
    await answer;
    assert.equal(connection.isTransaction, false);
  });

  test('of the same kind is batched, unless another kind comes between or one of them fails', async () => {
    const { connection, group, names } = fixture();
    const batches: string[][] = [];
    const addAll = (items: readonly string[]): string[] => {
      batches.push([...items]);
      return items.map((name) => add(group, connection, name)());
    };
    const addInBatch = (name: string): Promise<string> => group.runInBatch(addAll, name, true);
    await Promise.all([
      addInBatch('a'),
      addInBatch('b'),
      group.run(add(group, connection, 'c')),
      addInBatch('d'),
    ]);
    assert.deepEqual(batches, [['a', 'b'], ['d']]);
    batches.length = 0;
    const answers = await Promise.allSettled(['e', 'a', 'f'].map(addInBatch));
    assert.deepEqual(batches, [['e', 'a', 'f'], ['e'], ['a'], ['f']]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    assert.deepEqual(names(), ['a', 'b', 'c', 'd', 'e', 'f']);
  });

  test('that comes last sees what came with it', async () => {
    const { connection, group } = fixture();
    const looked = group.runLast(
      () => connection.prepare('select count(*) as count from things').get()?.['count'],
    );
    await group.run(add(group, connection, 'a'));
    assert.equal(await looked, 1);
  });

  test('that fails does so alone: the rest of the batch is kept', async () => {
    const { connection, group, names } = fixture();
    let rolledBack = 0;
    group.hooks = { ...group.hooks, afterRollback: () => (rolledBack += 1) };
    await group.run(add(group, connection, 'a'));
    const outcomes = await Promise.allSettled([
      group.run(add(group, connection, 'b')),
      group.run(add(group, connection, 'a')),
      group.run(add(group, connection, 'c')),
    ]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    assert.deepEqual([names(), rolledBack, connection.isTransaction], [['a', 'b', 'c'], 2, false]);
  });

  test('fails as a whole without a database: all callers get the error, the next batch goes on', async () => {
    const { connection, group, names } = fixture();
    let away = true;
    group.hooks = {
      ...group.hooks,
      beforeCommit: () => {
        if (away) throw new BerthError('unavailable', 'the disk is full');
      },
    };
    const outcomes = await Promise.allSettled([
      group.run(add(group, connection, 'a')),
      group.run(add(group, connection, 'b')),
    ]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    assert.deepEqual([names(), connection.isTransaction], [[], false]);
    away = false;
    await group.run(add(group, connection, 'c'));
    assert.deepEqual(names(), ['c']);
  });

  test('that is large is synced beside other work; reads that depend on it wait with it', async () => {
    const { connection } = fixture();
    const synced = Promise.withResolvers<void>();
    const disk: { -readonly [name in keyof DiskSync]: DiskSync[name] } = {
      sync: () => assert.fail('everything else would wait'),
      syncInBackground: () => (disk.pending = synced.promise),
      pending: undefined,
      hasFailed: false,
    };
    const group = new GroupCommit(connection, disk, (error) => error as Error);
    const told: string[] = [];
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const added = Promise.all(names.map((name) => group.run(add(group, connection, name)))).then(() =>
      told.push('added'),
    );
    await new Promise((resolve) => setImmediate(resolve));
    const looked = group
      .read(() => connection.prepare('select count(*) as count from things').get()?.['count'])
      .then((count) => told.push(`looked ${String(count)}`));
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(told, []);
    synced.resolve();
    await Promise.all([added, looked]);
    assert.deepEqual(told.sort(), ['added', 'looked 6']);
  });

  describe('that the disk did not take', () => {
    /** A disk that is away until it works. */
    class LostDisk implements DiskSync {
      works = false;
      hasFailed = false;
      syncs = 0;
      readonly pending = undefined;

      sync(): void {
        this.syncs += 1;
        this.hasFailed = !this.works;
        if (!this.works) throw new Error('the disk is away');
      }

      async syncInBackground(): Promise<void> {
        this.sync();
      }
    }

    function lost(): { disk: LostDisk; connection: DatabaseSync; group: GroupCommit } {
      const connection = new DatabaseSync(':memory:');
      connection.exec('create table things (name text primary key)');
      const disk = new LostDisk();
      return {
        disk,
        connection,
        group: new GroupCommit(
          connection,
          disk,
          (cause) => new BerthError('unavailable', 'not confirmed', { cause }),
        ),
      };
    }

    const isTold = { code: 'unavailable', message: 'not confirmed' };

    test('is not visible to reads until it is on disk, if no caller waited for it', async () => {
      const { disk, connection, group } = lost();
      await group.runUnsynced(add(group, connection, 'a'));
      while (disk.syncs === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      for (let tries = 0; tries < 2; tries += 1)
        await assert.rejects(
          group.read(() => 'a'),
          isTold,
        );
      disk.works = true;
      assert.equal(await group.read(() => 'a'), 'a');
    });

    for (const [size, count] of [
      ['a little', 1],
      ['much', 6],
    ] as const) {
      test(`is not visible either if callers waited for ${size} of it`, async () => {
        const { disk, connection, group } = lost();
        const added = await Promise.allSettled(
          Array.from({ length: count }, (_, index) => group.run(add(group, connection, `thing ${index}`))),
        );
        assert.deepEqual(new Set(added.map(({ status }) => status)), new Set(['rejected']));
        // Two in one turn: the second must not go by what the first has begun.
        for (const { status } of await Promise.allSettled([
          group.read(() => 'a'),
          group.read(() => 'a'),
          group.run(() => 'a'),
        ]))
          assert.equal(status, 'rejected');
        await assert.rejects(
          group.read(() => 'a'),
          isTold,
        );
        disk.works = true;
        assert.equal(await group.read(() => 'a'), 'a');
        const { syncs } = disk;
        await group.read(() => 'a');
        assert.equal(disk.syncs, syncs);
      });
    }

    test('is done once, and acknowledged to callers that waited for the commit only', async () => {
      const { connection } = lost();
      const disk = new LostDisk();
      // One that says what is wrong in words that do not mean that nothing was done.
      const group = new GroupCommit(connection, disk, (error) => error as Error);
      let done = 0;
      const count = (): number => {
        add(group, connection, `thing ${done}`)();
        return (done += 1);
      };
      const outcomes = await Promise.allSettled([group.run(count), group.runLast(count)]);
      assert.deepEqual([outcomes.map(({ status }) => status), done], [['rejected', 'fulfilled'], 2]);
    });
  });

  test('is refused once the store has closed', async () => {
    const { connection, group } = fixture();
    group.close();
    connection.close();
    await assert.rejects(
      group.run(() => 1),
      /the server is stopping/,
    );
  });

  test('can be committed at once, for a store that closes', () => {
    const { connection, group, names } = fixture();
    void group.run(add(group, connection, 'a'));
    group.flush();
    assert.deepEqual(names(), ['a']);
    group.flush();
  });
});
