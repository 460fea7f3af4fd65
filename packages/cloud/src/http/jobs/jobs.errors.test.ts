import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { BerthError } from '../../support/errors.ts';
import type { ErrorCode } from '../../support/errors.ts';
import { sendJobError } from './jobs.errors.ts';

/** What is written to a response. */
function answer(error: BerthError): { status: number; headers: Record<string, unknown>; body: string } {
  const written = { status: 0, headers: {}, body: '' };
  sendJobError(
    {
      headersSent: false,
      destroyed: false,
      writeHead: (status: number, headers: Record<string, unknown>) =>
        Object.assign(written, { status, headers }),
      end: (body: string) => Object.assign(written, { body }),
    } as unknown as ServerResponse,
    error,
  );
  return written;
}

test('every failure is an object with one key, in JSON, with the status of its kind', () => {
  const statuses: Partial<Record<ErrorCode, number>> = {
    rule: 400,
    malformed: 400,
    unauthenticated: 401,
    forbidden: 403,
    'not-found': 404,
    method: 405,
    conflict: 409,
    state: 400,
    'too-large': 413,
    rate: 429,
    unavailable: 503,
    internal: 500,
  };
  for (const [code, status] of Object.entries(statuses)) {
    const { body, headers, ...rest } = answer(new BerthError(code as ErrorCode, 'what and "why"'));
    assert.deepEqual(
      [rest.status, JSON.parse(body), headers['content-type']],
      [status, { error: 'what and "why"' }, 'application/json; charset=utf-8'],
    );
  }
});

test('findings and headers go along', () => {
  const { body, headers } = answer(
    new BerthError('method', 'not allowed', { details: ['a', 'b'], headers: { allow: 'GET' } }),
  );
  assert.deepEqual([JSON.parse(body), headers['allow']], [{ error: 'not allowed: a; b' }, 'GET']);
});
