import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { operation } from './rest-operation.ts';
import type { Method, Operation } from './rest-operation.ts';
import { allowedMethods } from './allowed-methods.ts';

const at = (method: Method, path: string): Operation =>
  operation({
    id: method + path,
    method,
    path,
    tag: 'T',
    summary: 'S',
    access: 'read',
    status: 204,
    handle: () => Promise.resolve(),
  });
const operations = [
  at('POST', '/ships'),
  at('GET', '/ships'),
  at('GET', '/ships/{id}'),
  at('DELETE', '/ships/{id}'),
  at('POST', '/ships/{id}/crew'),
  at('GET', '/ships/lost'),
];

describe('the methods of a path', () => {
  test('are those of every pattern that fits, in order, each once', () => {
    assert.deepEqual(allowedMethods(operations, '/ships'), ['GET', 'POST']);
    assert.deepEqual(allowedMethods(operations, '/ships/s1'), ['DELETE', 'GET']);
    assert.deepEqual(allowedMethods(operations, '/ships/lost'), ['DELETE', 'GET']);
    assert.deepEqual(allowedMethods(operations, '/ships/s%201/crew'), ['POST']);
  });

  test('are none where nothing fits', () => {
    for (const path of [
      '',
      '/',
      '/shi',
      '/ships/',
      '//ships',
      '/ships//crew',
      '/ships/s1/',
      '/ships/s1/crew/',
      '/ships/s1/crew/x',
      '/SHIPS',
    ])
      assert.deepEqual(allowedMethods(operations, path), [], path);
  });
});
