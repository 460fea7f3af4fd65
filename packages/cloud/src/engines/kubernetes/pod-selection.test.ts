import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodObject } from './kubernetes-objects.ts';
import { instanceMetadata, readDetails } from './pod-labels.ts';
import { selectPod } from './pod-selection.ts';
import { podState } from './pod-state.ts';

test('of a pod only what is read is kept, and it says the same', () => {
  const details = { id: 'w1', image: 'image', labels: {}, ports: [], memoryInGb: 1, gpus: null };
  const container = {
    name: 'main',
    image: 'image',
    state: { terminated: { exitCode: 137, reason: 'OOMKilled' } },
  };
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'EvictionByEvictionAPI',
    message: 'drained',
  };
  const owned = instanceMetadata('inst', 'K8S-1', details);
  const pod = {
    metadata: {
      name: 'berth-w1',
      uid: 'uid',
      resourceVersion: '7',
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...owned,
      annotations: { ...owned.annotations, other: 'x'.repeat(1000) },
      managedFields: [{ manager: 'kubelet', fieldsV1: {} }],
    },
    spec: { nodeName: 'node', containers: [{ name: 'main', env: [] }], tolerations: [] },
    status: {
      phase: 'Failed' as const,
      podIP: '10.0.0.1',
      qosClass: 'Burstable',
      conditions: [
        { ...condition, lastProbeTime: null },
        { type: 'Initialized', status: 'True' },
      ],
      containerStatuses: [{ ...container, restartCount: 0, lastState: {} }],
    },
  };
  const selected = selectPod(pod);
  assert.deepEqual(selected, {
    metadata: {
      name: 'berth-w1',
      uid: 'uid',
      resourceVersion: '7',
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...owned,
    },
    spec: { nodeName: 'node', containers: [] },
    status: { phase: 'Failed', podIP: '10.0.0.1', conditions: [condition], containerStatuses: [container] },
  } satisfies PodObject);
  assert.deepEqual(podState(selected), podState(pod));
  assert.deepEqual(readDetails(selected.metadata), details);
});

test('a pod that no node has taken has no status to keep', () => {
  const pod = { metadata: { name: 'berth-w1', uid: 'uid' }, spec: { containers: [] } };
  assert.deepEqual(selectPod(pod), {
    metadata: { name: 'berth-w1', uid: 'uid', annotations: {} },
    spec: { containers: [] },
  });
});
