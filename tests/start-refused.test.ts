import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { BERTH_COMMAND, runBerth } from '../packages/testing/src/berth-command.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';

/** No mode of a folder keeps root out. */
const user = process.getuid?.() === 0 ? 65534 : undefined;
const isReadable =
  user === undefined || spawnSync(BERTH_COMMAND, ['--version'], { uid: user, gid: user }).status === 0;

describe('a configuration that makes no sense', () => {
  let database: TestDatabase;
  before(async () => {
    database = await createTestDatabase('sqlite');
  });
  after(() => database.drop());
  const up = (args: string[], env: Record<string, string> = {}) =>
    runBerth(['up', '--data', database.data, ...args], env);

  test('stops the start with 2, and each mistake is named with what is allowed', async () => {
    const refused = await up(['--port', '99999'], {
      BERTH_RATE_LIMIT_PER_MINUTE: 'many',
      BERTH_LOG_LEVEL: 'loud',
      BERTH_ROOT_KEY: 'hunter2',
    });
    assert.equal(refused.code, 2);
    for (const words of [
      /port from .* is "?99999"?; allowed: a whole number from 0 to 65535/,
      /rateLimit\.perMinute from BERTH_RATE_LIMIT_PER_MINUTE is "many"/,
      /log\.level from BERTH_LOG_LEVEL is "loud"; allowed: trace/,
      /rootKey from BERTH_ROOT_KEY/,
    ])
      assert.match(refused.stderr, words);
    assert.doesNotMatch(refused.stderr, /hunter2|\n {4}at /);
    assert.equal(refused.stdout, '');
  });

  test('is named in the file too, and a file that is not there is said to be missing', async () => {
    const file = join(database.data, 'berth.yaml');
    writeFileSync(file, 'rateLimit:\n  perMinite: 5\n');
    const misspelt = await up(['--config', file]);
    assert.equal(misspelt.code, 2);
    assert.match(misspelt.stderr, /perMinite/);
    const missing = await up(['--config', join(database.data, 'missing.yaml')]);
    assert.equal(missing.code, 2);
    assert.match(missing.stderr, /missing\.yaml/);
  });

  test('with a database that does not answer ends with a sentence that says where it is looked for', async () => {
    const refused = await up(['--port', '0'], {
      BERTH_DATABASE_URL: 'postgres://nobody:hunter2@127.0.0.1:9/none',
    });
    assert.equal(refused.code, 1);
    assert.equal(
      refused.stderr,
      'berth: the database at 127.0.0.1:9 does not answer (ECONNREFUSED); check --database or BERTH_DATABASE_URL\n',
    );
  });

  test('with a missing database names it, without the user', async () => {
    const empty = await createTestDatabase('postgres', { empty: true });
    const url = Object.assign(new URL(empty.url), { pathname: '/nowhere' });
    const refused = await up(['--port', '0'], { BERTH_DATABASE_URL: url.href });
    assert.equal(refused.code, 1);
    assert.equal(
      refused.stderr,
      `berth: there is no database "nowhere" at ${url.host}; make it, or check --database or BERTH_DATABASE_URL\n`,
    );
    await empty.drop();
  });

  test('with a data folder that is a file ends with a sentence too', async () => {
    const file = join(database.data, 'file');
    writeFileSync(file, '');
    const refused = await runBerth(['up', '--port', '0', '--data', file]);
    assert.equal(refused.code, 1);
    assert.equal(
      refused.stderr,
      `berth: the data folder ${file} is not a folder; choose another with --data or BERTH_DATA\n`,
    );
  });

  test('with a data folder that this user may not write to says so', {
    skip: !isReadable && 'NOT RUN: an ordinary user cannot read this clone',
  }, async () => {
    const closed = await createTestDatabase('sqlite');
    chmodSync(closed.data, 0o555);
    await assert.rejects(startServerProcess(closed, {}, ['--port', '0'], user), {
      message:
        `berth did not start:\nberth: the data folder ${closed.data} cannot be written (EACCES); let ` +
        `this user write there, or choose another with --data or BERTH_DATA\n`,
    });
    await closed.drop();
  });

  test('with a host that is not of this machine names the setting', async () => {
    for (const [host, words] of [
      ['192.0.2.1', /^is not an address of this machine \(EADDRNOTAVAIL\)$/],
      ['no-such-host.invalid', /^is not known \((ENOTFOUND|EAI_AGAIN)\)$/],
    ] as const) {
      const refused = await up(['--host', host, '--port', '0']);
      assert.equal(refused.code, 1);
      assert.match(
        /^berth: the host (\S+) (.*); choose another with --host or BERTH_HOST\n$/.exec(
          refused.stderr,
        )?.[2] ?? refused.stderr,
        words,
      );
    }
  });
});
