import assert from 'node:assert/strict';
import { test } from 'node:test';
import { actionWords, hardwareOf } from './pod-words.ts';

test('each action says what it keeps and what it loses', () => {
  const bare = { name: 'a', mounts: {} };
  const own = { name: 'a', mounts: { persistent: { size: 20, path: '/workspace' } } };
  const shared = { name: 'a', mounts: { network: [{ volumeId: 'v', path: '/data' }] } };
  assert.match(actionWords('stop', bare).lost, /nothing of its files is kept/);
  assert.match(actionWords('stop', own).lost, /\/workspace \(20 GB\) stays/);
  assert.match(actionWords('terminate', own).lost, /its volume at \/workspace \(20 GB\) are deleted/);
  assert.match(actionWords('terminate', shared).lost, /network volume at \/data stays/);
  assert.equal(actionWords('start', bare).danger, false);
});

test('hardware is one short text', () => {
  const gpu = { id: 'A40', count: 2, vcpuCount: 1, memory: 1 };
  assert.equal(hardwareOf({ gpu }), '2 × A40');
  assert.equal(hardwareOf({ gpu: { ...gpu, count: 1, virtual: true } }), 'A40 (virtual)');
  assert.equal(hardwareOf({ cpu: { id: 'cpu3c', vcpuCount: 4, memory: 8 } }), '4 vCPU cpu3c');
});
