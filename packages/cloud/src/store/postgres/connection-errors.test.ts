import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isConnectionError } from './connection-errors.ts';

const failed = (code: string): Error => Object.assign(new Error('no'), { code });

test('only connection failures count as an unavailable database', () => {
  for (const code of ['ECONNREFUSED', 'ECONNRESET', 'EAI_AGAIN', 'ENOTFOUND', '08006', '57P01', '53300'])
    assert.equal(isConnectionError(failed(code)), true, code);
  for (const words of [
    'Connection terminated unexpectedly',
    'timeout exceeded when trying to connect',
    'Query read timeout',
  ])
    assert.equal(isConnectionError(new Error(words)), true, words);
  for (const code of ['23505', '42P01', '28P01', '3D000', 'ERR_TLS_CERT_ALTNAME_INVALID'])
    assert.equal(isConnectionError(failed(code)), false, code);
});
