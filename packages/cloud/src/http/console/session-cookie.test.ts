import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Request } from '../raw-http.ts';
import { applySession, sessionTokenOf } from './session-cookie.ts';

const ORIGIN = 'https://berth.example';

function apply(
  headers: Record<string, string>,
  method = 'GET',
): { request: Request; authorization: string | undefined } {
  const all: Record<string, string> = { host: '127.0.0.1:8484', cookie: 'berth_session=bst_x', ...headers };
  const rawHeaders = Object.entries(all).flat();
  const request = { method, headers: all, rawHeaders } as unknown as Request;
  applySession(request, () => ORIGIN);
  return { request, authorization: request.headers.authorization };
}

test('a session cookie becomes a bearer token', () => {
  const { request, authorization } = apply({ cookie: 'a=1; berth_session=bst_x; b=2' });
  assert.equal(authorization, 'Bearer bst_x');
  assert.equal(sessionTokenOf(request), 'bst_x');
});

test('what a request is forwarded with has neither the cookie nor the token', () => {
  const { request } = apply({ cookie: 'a=1; berth_session=bst_x; b=2' });
  assert.deepEqual(request.rawHeaders, ['host', '127.0.0.1:8484', 'cookie', 'a=1; b=2']);
  assert.deepEqual(apply({}).request.rawHeaders, ['host', '127.0.0.1:8484']);
  assert.equal(apply({}).request.headers.cookie, undefined);
});

test('a key in the request comes before the session', () => {
  assert.equal(apply({ authorization: 'Bearer rpa_1' }).authorization, 'Bearer rpa_1');
});

test('a write needs the header of the console, and an origin of this server', () => {
  const write = (headers: Record<string, string>) => apply(headers, 'POST').authorization !== undefined;
  assert.equal(write({}), false);
  assert.equal(write({ 'x-berth-console': '1' }), true);
  assert.equal(write({ 'x-berth-console': '1', origin: 'http://127.0.0.1:8484' }), true);
  assert.equal(write({ 'x-berth-console': '1', origin: ORIGIN }), true);
  assert.equal(write({ 'x-berth-console': '1', origin: 'http://127.0.0.1:9000' }), false);
  assert.equal(write({ 'x-berth-console': '1', origin: 'null' }), false);
  assert.equal(write({ 'x-berth-console': '1', 'sec-fetch-site': 'same-site' }), false);
});

test('what another site causes is not signed in', () => {
  const isSignedIn = (headers: Record<string, string>) => apply(headers).authorization !== undefined;
  assert.equal(isSignedIn({ 'sec-fetch-site': 'cross-site' }), false);
  assert.equal(isSignedIn({ 'sec-fetch-site': 'same-site' }), false);
  assert.equal(isSignedIn({ 'sec-fetch-site': 'none' }), true);
  assert.equal(isSignedIn({ 'sec-fetch-site': 'same-origin' }), true);
});

test('a WebSocket has to name the origin of this server', () => {
  const isSignedIn = (headers: Record<string, string>) =>
    apply({ upgrade: 'websocket', ...headers }).authorization !== undefined;
  assert.equal(isSignedIn({}), false);
  assert.equal(isSignedIn({ origin: 'http://evil.example' }), false);
  assert.equal(isSignedIn({ origin: 'http://127.0.0.1:8484' }), true);
});
