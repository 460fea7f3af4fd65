import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { nextPodStep } from './pod-step.ts';
import {
  markEnded,
  markRunning,
  markStarting,
  requestNewInstance,
  requestRestart,
  requestStart,
  requestStop,
  requestTermination,
} from './pod-transitions.ts';
import { samplePod } from './pod.fixture.ts';
import type { Pod } from './pod-record.ts';

const NOW = 1000;
const running = markRunning(samplePod, { handle: '{}', startedAt: 500 }, NOW);
const exited = markEnded(requestStop(running, NOW), { at: 900, exitCode: 0, reason: null });

describe('the life of a pod', () => {
  test('starts, runs, stops and starts again as a new generation', () => {
    assert.partialDeepStrictEqual(running, {
      status: 'RUNNING',
      settled: true,
      instanceGeneration: 1,
      startedAt: 500,
      endedAt: null,
    });
    assert.partialDeepStrictEqual(requestStop(running, NOW), {
      wanted: 'stopped',
      status: 'RUNNING',
      settled: false,
    });
    assert.partialDeepStrictEqual(exited, {
      wanted: 'stopped',
      status: 'EXITED',
      settled: true,
      endedAt: 900,
      exitCode: 0,
    });
    assert.partialDeepStrictEqual(requestStart(exited, exited, 0.5, NOW), {
      wanted: 'running',
      status: 'PROVISIONING',
      generation: 2,
      settled: false,
      costPerHour: 0.5,
    });
    assert.partialDeepStrictEqual(requestRestart(running, 'restart', NOW), {
      status: 'STARTING',
      generation: 2,
      settled: false,
    });
    assert.equal(requestNewInstance(samplePod, NOW, 'why').status, 'PROVISIONING');
    assert.partialDeepStrictEqual(requestTermination(running, NOW), {
      wanted: 'terminated',
      status: 'TERMINATED',
      settled: false,
    });
  });

  test('an unrequested end has a reason and is an error; a pod that never ran has no end', () => {
    assert.partialDeepStrictEqual(markEnded(running, { at: 900, exitCode: 3, reason: 'code 3' }), {
      wanted: 'stopped',
      status: 'ERROR',
      statusDetail: 'code 3',
      endedAt: 900,
    });
    assert.equal(markEnded(samplePod, { at: 900, exitCode: null, reason: 'no image' }).endedAt, null);
  });

  test('an instant that has stopped a pod does not stop it again', () => {
    assert.equal(requestStart({ ...exited, stopAfter: NOW - 1 }, exited, 0, NOW).stopAfter, null);
    assert.equal(requestStart({ ...exited, stopAfter: NOW + 1 }, exited, 0, NOW).stopAfter, NOW + 1);
  });

  /** Takes steps as the reconciler does, on an engine that follows every step, until nothing is left to do. */
  function settle(
    pod: Pod,
    instance: { status: 'running' | 'exited'; labels: Record<string, string> } | undefined,
  ): { pod: Pod; instance: typeof instance; steps: number } {
    let [now, there] = [pod, instance];
    for (let steps = 0; steps < 10; steps += 1) {
      switch (nextPodStep(now, there)) {
        case 'nothing':
          return { pod: now, instance: there, steps };
        case 'start':
        case 'replace':
          there = { status: 'running', labels: { generation: String(now.generation) } };
          now = markRunning(markStarting(now, 'Starting', NOW), { handle: '{}', startedAt: NOW }, NOW);
          break;
        case 'adopt':
          now = markRunning(now, { handle: '{}', startedAt: NOW }, NOW);
          break;
        case 'stop':
          there = { status: 'exited', labels: there?.labels ?? {} };
          now = markEnded(now, { at: NOW, exitCode: 0, reason: null });
          break;
        case 'ended':
          now = markEnded(now, { at: NOW, exitCode: 1, reason: now.wanted === 'running' ? 'ended' : null });
          break;
        case 'remove':
          there = undefined;
          now = markEnded(now, { at: NOW, exitCode: null, reason: null });
      }
    }
    throw new Error('it never rests');
  }

  test('any history ends in the wanted state, with one instance of the right generation or none', () =>
    checkProperty(
      fc.property(
        fc.array(
          fc.constantFrom('start', 'stop', 'restart', 'edit', 'terminate', 'dies', 'settle', 'forgets'),
          { maxLength: 30 },
        ),
        (events) => {
          let { pod, instance } = settle(samplePod, undefined);
          for (const event of events) {
            try {
              if (event === 'start') pod = requestStart(pod, pod, 0, NOW);
              if (event === 'stop') pod = requestStop(pod, NOW);
              if (event === 'restart') pod = requestRestart(pod, 'restart', NOW);
              if (event === 'edit' && pod.wanted === 'running') pod = requestNewInstance(pod, NOW, 'edited');
              if (event === 'terminate') pod = requestTermination(pod, NOW);
            } catch {
              // Not possible now: nothing is changed.
            }
            if (event === 'dies' && instance !== undefined) instance = { ...instance, status: 'exited' };
            // Berth was killed after a start and before that was written down.
            if (event === 'forgets' && pod.settled && pod.status === 'RUNNING')
              pod = {
                ...pod,
                status: 'STARTING',
                settled: false,
                handle: null,
                instanceGeneration: pod.generation - 1,
              };
            if (event === 'settle') ({ pod, instance } = settle(pod, instance));
          }
          ({ pod, instance } = settle(pod, instance));
          assert.equal(pod.settled, true);
          if (pod.wanted === 'running')
            assert.deepEqual(
              [pod.status, instance?.status, instance?.labels['generation']],
              ['RUNNING', 'running', String(pod.generation)],
            );
          else assert.notEqual(instance?.status, 'running');
          if (pod.wanted === 'terminated')
            assert.deepEqual([pod.status, instance], ['TERMINATED', undefined]);
        },
      ),
    ));
});
