import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ContainerStatus, PodObject, PodStatus } from './kubernetes-objects.ts';
import { podState, unschedulableReason } from './pod-state.ts';

function pod(status: PodStatus, more: { deletionTimestamp?: string; nodeName?: string } = {}): PodObject {
  const { deletionTimestamp, nodeName = 'node-1' } = more;
  return {
    metadata: { name: 'p', uid: 'u', ...(deletionTimestamp !== undefined && { deletionTimestamp }) },
    spec: { containers: [], nodeName },
    status,
  };
}

function container(state: ContainerStatus['state']): PodStatus {
  return { containerStatuses: [{ name: 'main', image: 'a/b:1', state: state ?? {} }] };
}

const STARTED = '2026-01-01T00:00:01Z';
const FINISHED = '2026-01-01T00:00:05Z';

describe('what a pod says of its instance', () => {
  test('a running and an ended container', () => {
    const running = podState(pod(container({ running: { startedAt: STARTED } })));
    assert.deepEqual([running.status, running.startedAt], ['running', Date.parse(STARTED)]);
    const ended = podState(
      pod(
        container({ terminated: { exitCode: 3, reason: 'Error', startedAt: STARTED, finishedAt: FINISHED } }),
      ),
    );
    assert.deepEqual(
      [ended.status, ended.exitCode, ended.endedAt, ended.reasons],
      ['exited', 3, Date.parse(FINISHED), []],
    );
  });

  test('a program that is not in the image never ran', () => {
    const message =
      'failed to create containerd task: failed to start: exec: "nope": executable file not found in $PATH: unknown';
    const state = podState(pod(container({ terminated: { exitCode: 128, reason: 'StartError', message } })));
    assert.deepEqual([state.neverRan, state.isPermanent], [true, true]);
    assert.match(state.reasons[0] ?? '', /^the command could not be run: "nope": executable file not found/);
  });

  test('an image that cannot be pulled: for good, or for now', () => {
    const waiting = (message: string): ReturnType<typeof podState> =>
      podState(pod(container({ waiting: { reason: 'ErrImagePull', message } })));
    const missing = waiting(
      'rpc error: code = NotFound desc = failed to pull and unpack image "a/b:1": not found',
    );
    assert.equal(missing.isPermanent, true);
    assert.match(missing.reasons[0] ?? '', /the image a\/b:1 could not be pulled: not found/);
    assert.equal(waiting('dial tcp 1.2.3.4:443: i/o timeout').isPermanent, false);
  });

  test('the reasons of an end', () => {
    const reason = (status: PodStatus, more = {}): string | undefined =>
      podState(pod(status, more)).reasons[0];
    assert.equal(
      reason(container({ terminated: { exitCode: 137, reason: 'OOMKilled' } })),
      'It ran out of memory.',
    );
    assert.equal(
      reason({ phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' }),
      'The node evicted it: The node was low on resource: memory.',
    );
    assert.equal(reason({ phase: 'Failed', reason: 'DeadlineExceeded' }), 'It ran longer than it may.');
    const disrupted = (by: string): PodStatus => ({
      phase: 'Failed',
      conditions: [
        { type: 'DisruptionTarget', status: 'True', reason: by },
        { type: 'Ready', status: 'False' },
      ],
    });
    assert.equal(reason(disrupted('PreemptionByScheduler')), 'It made room for a pod of higher priority.');
    const lost = pod(
      {
        ...disrupted('DeletionByTaintManager'),
        phase: 'Running',
        ...container({ running: { startedAt: STARTED } }),
      },
      { deletionTimestamp: FINISHED },
    );
    assert.deepEqual([podState(lost).status, podState(lost).exitCode], ['exited', null]);
    assert.deepEqual(podState(lost).reasons, ['The node node-1 was lost.']);
    const unstarted = pod(
      {
        phase: 'Pending',
        conditions: [
          { type: 'PodScheduled', status: 'True' },
          { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' },
        ],
      },
      { deletionTimestamp: FINISHED },
    );
    assert.deepEqual([podState(unstarted).status, podState(unstarted).isDisrupted], ['exited', true]);
    const rebooted = container({ terminated: { exitCode: 255, reason: 'Unknown' } });
    assert.equal(reason(rebooted), 'The node node-1 was restarted.');
    assert.equal(reason(disrupted('EvictionByEvictionAPI')), 'Its node is drained.');
    for (const status of [
      disrupted('PreemptionByScheduler'),
      rebooted,
      { phase: 'Failed', reason: 'OutOfcpu' },
    ])
      assert.equal(podState(pod(status as PodStatus)).isDisrupted, true);
    for (const terminated of [{ exitCode: 1 }, { exitCode: 137, reason: 'OOMKilled' }])
      assert.equal(podState(pod(container({ terminated }))).isDisrupted, false);
  });

  test('which resource no node has', () => {
    const status: PodStatus = {
      phase: 'Pending',
      conditions: [
        {
          type: 'PodScheduled',
          status: 'False',
          reason: 'Unschedulable',
          message: '0/1 nodes are available: 1 Insufficient memory. preemption: none',
        },
      ],
    };
    const state = podState(pod(status));
    assert.equal(state.isUnscheduled, true);
    assert.deepEqual(state.reasons, ['It waits for a node: none of 1 has free memory.']);
    assert.equal(
      unschedulableReason(
        "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match Pod's node affinity/selector.",
      ),
      'It waits for a node: none of 3 has free nvidia.com/gpu and the wanted GPU or label.',
    );
    assert.equal(
      unschedulableReason('0/0 nodes are available.'),
      'It waits for a node: the cluster has none.',
    );
  });
});
