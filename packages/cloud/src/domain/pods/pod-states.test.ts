import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { samplePod } from './pod.fixture.ts';
import { allowedActions, checkAction, desiredStatus } from './pod-states.ts';
import type { PodAction } from './pod-states.ts';
import type { Pod, PodStatus } from './pod-record.ts';

const wantedIn = (status: PodStatus): Pod['wanted'] =>
  status === 'TERMINATED' ? 'terminated' : status === 'EXITED' || status === 'ERROR' ? 'stopped' : 'running';
const pod = (status: PodStatus, fields: Partial<Pod> = {}): Pod => ({
  ...samplePod,
  status,
  wanted: wantedIn(status),
  ...fields,
});

describe('what can be asked of a pod', () => {
  const table: [PodStatus, PodAction[]][] = [
    ['PROVISIONING', ['stop', 'terminate']],
    ['STARTING', ['stop', 'terminate']],
    ['RUNNING', ['stop', 'restart', 'terminate']],
    ['EXITED', ['start', 'terminate']],
    ['ERROR', ['start', 'terminate']],
    ['TERMINATED', []],
  ];
  for (const [status, allowed] of table) {
    test(`${status}: ${allowed.join(', ') || 'nothing'}`, () => {
      assert.deepEqual(allowedActions(pod(status)), allowed);
      for (const action of ['start', 'stop', 'restart', 'terminate'] as const) {
        if (allowed.includes(action)) checkAction(pod(status), action);
        else assert.throws(() => checkAction(pod(status), action), { code: 'state' });
      }
    });
  }

  test('a stopping pod accepts another stop, or terminate', () => {
    assert.deepEqual(allowedActions(pod('RUNNING', { wanted: 'stopped' })), ['stop', 'terminate']);
    assert.throws(() => checkAction(pod('RUNNING', { wanted: 'stopped' }), 'start'), /and stopping/);
  });

  test('a locked pod can only be started', () => {
    assert.deepEqual(allowedActions(pod('RUNNING', { locked: true })), []);
    assert.deepEqual(allowedActions(pod('EXITED', { locked: true })), ['start']);
    for (const action of ['stop', 'restart', 'reset', 'terminate'] as const)
      assert.throws(() => checkAction(pod('RUNNING', { locked: true }), action), /locked/);
  });

  test('the older interfaces show the desired state', () => {
    assert.deepEqual(
      (['PROVISIONING', 'RUNNING', 'EXITED', 'ERROR', 'TERMINATED'] as const).map((status) =>
        desiredStatus(pod(status)),
      ),
      ['RUNNING', 'RUNNING', 'EXITED', 'EXITED', 'TERMINATED'],
    );
    assert.equal(desiredStatus(pod('RUNNING', { wanted: 'stopped' })), 'EXITED');
  });
});
