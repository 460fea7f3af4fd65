import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { parseUserRange } from '../../../support/user-range.ts';
import { AccountUsers } from './account-users.ts';

describe('users of accounts', () => {
  const base = mkdtempSync(join(tmpdir(), 'berth-users-'));
  after(() => rmSync(base, { recursive: true }));
  const range = { first: 5000, last: 5009 };

  test('each account has one of its own, the same after a restart', () => {
    const folder = join(base, 'one');
    const users = new AccountUsers(folder, range);
    const accounts = Array.from({ length: 10 }, (_, index) => `account${index}`);
    const uids = accounts.map((account) => users.userOf(account).uid);
    assert.equal(new Set(uids).size, 10);
    assert.ok(uids.every((uid) => uid >= 5000 && uid <= 5009));
    const again = new AccountUsers(folder, range);
    assert.deepEqual(
      accounts.toReversed().map((account) => again.userOf(account).uid),
      uids.toReversed(),
    );
    assert.throws(() => again.userOf('one too many'), /all user ids from 5000 to 5009/);
  });

  test('two servers that share the folder agree', () => {
    const [one, other] = [
      new AccountUsers(join(base, 'two'), range),
      new AccountUsers(join(base, 'two'), range),
    ];
    assert.notEqual(one.userOf('a').uid, other.userOf('b').uid);
    assert.deepEqual(one.userOf('b'), other.userOf('b'));
    assert.deepEqual(other.userOf('a'), one.userOf('a'));
  });

  test('a range is two numbers without root', () => {
    assert.deepEqual(parseUserRange('1900000000-1900065535'), { first: 1_900_000_000, last: 1_900_065_535 });
    for (const text of ['', '5', '0-10', '10-9', '1-4294967295', 'a-b', '1-2-3', '-5'])
      assert.equal(parseUserRange(text), undefined, text);
  });
});
