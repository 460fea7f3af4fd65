import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connectError } from './connect-error.ts';

const PLACE = { host: 'db.example', port: 5432, database: 'berth' };
const CHECK = 'check --database or BERTH_DATABASE_URL';
const failed = (code: string, message = 'user "hunter" with password "hunter2"'): Error =>
  Object.assign(new Error(message), { code });

describe('a database that cannot be connected to at the start', () => {
  test('is reported with its address, the reason and the setting, never with the user', () => {
    const told: [Error, string][] = [
      [failed('ECONNREFUSED'), 'the database at db.example:5432 does not answer (ECONNREFUSED)'],
      [failed('EAI_AGAIN'), 'the database at db.example:5432 does not answer (EAI_AGAIN)'],
      [failed('53300'), 'the database at db.example:5432 does not answer (53300)'],
      [
        new Error('timeout exceeded when trying to connect'),
        'the database at db.example:5432 does not answer (timeout exceeded when trying to connect)',
      ],
      [failed('28P01'), 'the database at db.example:5432 refuses the user or the password (28P01)'],
      [
        new Error('SASL: no password'),
        'the database at db.example:5432 refuses the user or the password (SASL: no password)',
      ],
      [failed('3D000'), 'there is no database "berth" at db.example:5432; make it, or'],
      [failed('42501'), 'the user may not use the database "berth" at db.example:5432'],
      [
        failed('ERR_TLS_CERT_ALTNAME_INVALID'),
        'the database at db.example:5432 cannot be used (ERR_TLS_CERT_ALTNAME_INVALID)',
      ],
      [
        new Error('The server does not support SSL connections'),
        'the database at db.example:5432 cannot be used (The server does not support SSL connections)',
      ],
    ];
    for (const [error, words] of told)
      assert.equal(connectError(error, PLACE).message, `${words}${words.endsWith('or') ? '' : ';'} ${CHECK}`);
  });

  test('keeps the port apart from an IPv6 address', () => {
    assert.match(
      connectError(failed('ECONNREFUSED'), { host: '::1', port: 5433 }).message,
      /^the database at \[::1\]:5433 does not answer/,
    );
  });
});
