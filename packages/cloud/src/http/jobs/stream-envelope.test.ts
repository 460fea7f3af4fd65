import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wantsEnvelope } from './stream-envelope.ts';

const asks = (method: string, headers: Record<string, string>, query = ''): boolean =>
  wantsEnvelope(method, headers, new URLSearchParams(query));

test('the official clients are known by their name, or by a content type on a GET', () => {
  assert.equal(asks('GET', { 'user-agent': 'RunPod-JS-SDK/1.1.2 (Linux)' }), true);
  assert.equal(asks('POST', { 'user-agent': 'RunPod-Python-SDK/1.12.0' }), true);
  assert.equal(
    asks('GET', { 'user-agent': 'python-requests/2.34.2', 'content-type': 'application/json' }),
    true,
  );
  assert.equal(asks('GET', { 'content-type': 'Application/JSON; charset=utf-8' }), true);
});

test('other clients get the format of the contract', () => {
  assert.equal(asks('GET', {}), false);
  assert.equal(asks('GET', { 'user-agent': 'curl/8', accept: 'application/json' }), false);
  assert.equal(asks('POST', { 'content-type': 'application/json' }), false);
  assert.equal(asks('GET', { 'content-type': 'text/plain' }), false);
  assert.equal(asks('GET', { 'user-agent': 'not RunPod-JS-SDK' }), false);
});

test('?envelope= chooses the format', () => {
  assert.equal(asks('GET', {}, 'envelope=true'), true);
  assert.equal(asks('GET', {}, 'envelope'), true);
  for (const no of ['envelope=false', 'envelope=0'])
    assert.equal(asks('GET', { 'user-agent': 'RunPod-JS-SDK/1.1.2' }, no), false);
});
