import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findViolations } from './history-checker.ts';
import type { ViolationKind } from './history-checker.ts';
import type { HistoryEvent, Observation, Submission } from './job-history.ts';

const submission = (over: Partial<Submission> = {}): HistoryEvent => ({
  kind: 'submission',
  value: 'v',
  key: null,
  id: 'j',
  from: 0,
  to: 1,
  ...over,
});
const execution = (at = 2, over: { id?: string; value?: string; marker?: string } = {}): HistoryEvent => ({
  kind: 'execution',
  id: 'j',
  value: 'v',
  marker: 'm1',
  at,
  ...over,
});
const result = (
  output: string | null,
  at = 3,
  over: { error?: string | null; marker?: string; id?: string } = {},
): HistoryEvent => ({ kind: 'result', id: 'j', marker: 'm1', output, error: null, at, ...over });
const seen = (status: Observation['status'], at: number, over: Partial<Observation> = {}): HistoryEvent => ({
  kind: 'observation',
  id: 'j',
  status,
  output: null,
  error: null,
  brief: false,
  value: null,
  from: at,
  to: at + 0.5,
  ...over,
});
const retry = (at: number, outcome: 'accepted' | 'refused' | 'unknown' = 'accepted'): HistoryEvent => ({
  kind: 'retry',
  id: 'j',
  outcome,
  from: at,
  to: at + 0.5,
});
const chunk = (number: number, kept = true, marker = 'm1'): HistoryEvent => ({
  kind: 'chunk',
  id: 'j',
  marker,
  number,
  kept,
});
const stream = (...numbers: number[]): HistoryEvent => ({
  kind: 'stream',
  id: 'j',
  chunks: numbers.map((number) => ({ marker: 'm1', number })),
});
const killed: HistoryEvent = { kind: 'disturbance', what: 'worker killed', at: 2.5 };
const ran = [submission(), execution(), result('"a"')];
const done = [...ran, seen('COMPLETED', 4, { output: '"a"' })];
const failed = [
  submission(),
  execution(),
  result(null, 3, { error: '"no"' }),
  seen('FAILED', 4, { error: '"no"' }),
];

function finds(kind: ViolationKind, history: HistoryEvent[]): void {
  assert.ok(
    findViolations(history).some((fault) => fault.kind === kind),
    `expected "${kind}", found ${JSON.stringify(findViolations(history))}`,
  );
}

function passes(history: HistoryEvent[]): void {
  assert.deepEqual(findViolations(history), []);
}

describe('the checker lets pass', () => {
  test('a job that ran and ended', () => passes([...done, seen('COMPLETED', 9, { output: '"a"' })]));
  test('a job that failed, was retried and ended otherwise', () =>
    passes([
      ...failed,
      retry(5),
      seen('IN_QUEUE', 6),
      execution(7, { marker: 'm2' }),
      result('"b"', 8, { marker: 'm2' }),
      seen('COMPLETED', 9, { output: '"b"' }),
    ]));
  test('a retry without an answer that took effect later', () =>
    passes([...failed, retry(3, 'unknown'), seen('IN_QUEUE', 6), seen('FAILED', 9, { error: '"no"' })]));
  test('two attempts, the late result of the first dropped', () =>
    passes([
      ...ran,
      killed,
      execution(4, { marker: 'm2' }),
      result('"b"', 5, { marker: 'm2' }),
      seen('COMPLETED', 6, { output: '"b"' }),
    ]));
  test('a job whose workers were lost', () =>
    passes([
      submission(),
      execution(),
      killed,
      seen('FAILED', 5, { error: '"the worker that ran the job was lost (after 1 retry)"' }),
    ]));
  test('a cancelled job', () =>
    passes([
      submission(),
      { kind: 'cancel', id: 'j', from: 2 },
      seen('CANCELLED', 3),
      seen('CANCELLED', 3, { brief: true }),
    ]));
  test('a purged job', () => passes([submission(), { kind: 'purge', from: 2 }, seen('GONE', 3)]));
  test('a job whose time was over', () =>
    passes([
      submission(),
      { kind: 'deadline', id: 'j', status: 'GONE', at: 3 },
      { kind: 'deadline', id: 'j', status: 'TIMED_OUT', at: 2 },
      seen('TIMED_OUT', 3, { error: '"over"' }),
      seen('GONE', 4),
    ]));
  test('a submission that was not acknowledged', () => passes([submission({ id: null })]));
  test('a submission repeated with its idempotency key', () =>
    passes([submission({ id: null, key: 'k' }), submission({ key: 'k' }), ...done.slice(1)]));
  test('observations that overlap', () =>
    passes([
      ...ran,
      seen('COMPLETED', 4, { output: '"a"' }),
      seen('IN_PROGRESS', 4, { from: 3, to: 5 }),
      seen('COMPLETED', 8, { output: '"a"' }),
    ]));
  test('a stream that lacks what was never kept', () =>
    passes([...done, chunk(0), chunk(1, false), chunk(2), stream(0, 2)]));
});

describe('the checker finds', () => {
  test('an accepted job that is not found', () => finds('lost', [submission(), seen('GONE', 5)]));
  test('an accepted job that was never read', () => finds('lost', [submission()]));
  test('a job that hangs', () => finds('lost', [submission(), execution(), seen('IN_PROGRESS', 9)]));
  test('a job that waits for ever', () => finds('lost', [submission(), seen('IN_QUEUE', 9)]));
  test('a job that ran, unacknowledged, and is gone', () =>
    finds('lost', [submission({ id: null }), execution(), seen('GONE', 9)]));
  test('a purge that took a job which had ended', () =>
    finds('lost', [...done, { kind: 'purge', from: 6 }, seen('GONE', 7)]));
  test('two outputs', () =>
    finds('two results', [
      ...ran,
      result('"b"', 3, { marker: 'm2' }),
      execution(2, { marker: 'm2' }),
      seen('COMPLETED', 4, { output: '"a"' }),
      seen('COMPLETED', 4, { output: '"b"' }),
    ]));
  test('three ends of two lives', () =>
    finds('two results', [
      ...failed,
      retry(5),
      seen('CANCELLED', 7, { brief: true }),
      { kind: 'cancel', id: 'j', from: 5 },
      seen('COMPLETED', 8, { output: '"a"' }),
      result('"a"'),
    ]));
  test('two ends where the retry between them was refused', () =>
    finds('two results', [
      ...failed,
      retry(5, 'refused'),
      result('"b"', 6),
      seen('COMPLETED', 7, { output: '"b"' }),
    ]));
  test('a completed job that runs again', () =>
    finds('changed after the end', [
      ...done,
      seen('IN_PROGRESS', 6),
      seen('COMPLETED', 9, { output: '"a"' }),
    ]));
  test('a completed job that a retry sent back', () =>
    finds('changed after the end', [
      ...done,
      retry(5),
      seen('IN_QUEUE', 6),
      seen('COMPLETED', 9, { output: '"a"' }),
    ]));
  test('a failed job that runs again by itself', () =>
    finds('changed after the end', [...failed, seen('IN_QUEUE', 6), seen('FAILED', 9, { error: '"no"' })]));
  test('a retry that was answered before the end it undid', () =>
    finds('changed after the end', [
      submission(),
      retry(1),
      execution(),
      result(null, 3, { error: '"no"' }),
      seen('FAILED', 4, { error: '"no"' }),
      seen('IN_QUEUE', 6),
      seen('FAILED', 9, { error: '"no"' }),
    ]));
  test('a result after an acknowledged cancel', () =>
    finds('changed after the end', [
      ...ran,
      { kind: 'cancel', id: 'j', from: 2 },
      seen('CANCELLED', 3, { brief: true }),
      seen('COMPLETED', 6, { output: '"a"' }),
    ]));
  test('an output that no attempt gave', () =>
    finds('unexpected', [...ran, seen('COMPLETED', 4, { output: '"other"' })]));
  test('an output that was seen before any worker posted it', () =>
    finds('unexpected', [
      submission(),
      execution(),
      result('"a"', 7),
      seen('COMPLETED', 4, { output: '"a"' }),
    ]));
  test('an output of an attempt at another job', () =>
    finds('unexpected', [
      submission(),
      result('"a"'),
      execution(2, { id: 'other' }),
      submission({ id: 'other' }),
      seen('COMPLETED', 4, { output: '"a"' }),
    ]));
  test('an error that no attempt gave', () =>
    finds('unexpected', [submission(), execution(), killed, seen('FAILED', 4, { error: '"something"' })]));
  test('a worker lost where none was', () =>
    finds('unexpected', [
      submission(),
      execution(),
      seen('FAILED', 4, { error: '"the worker that ran the job was lost (after 1 retry)"' }),
    ]));
  test('a cancellation that was not requested', () =>
    finds('unexpected', [submission(), seen('CANCELLED', 4)]));
  test('a time that was not over', () =>
    finds('unexpected', [
      submission(),
      { kind: 'deadline', id: 'j', status: 'TIMED_OUT', at: 9 },
      seen('TIMED_OUT', 4),
    ]));
  test('a job that was gone for a while', () =>
    finds('unexpected', [...ran, seen('GONE', 3.2), seen('COMPLETED', 4, { output: '"a"' })]));
  test('an input that was not submitted', () =>
    finds('executed without submission', [...done, execution(5, { id: 'ghost', value: 'ghost' })]));
  test('an input that was handed in after it ran', () =>
    finds('executed without submission', [submission({ from: 5, to: 6 }), execution(2)]));
  test('the input of another job', () =>
    finds('executed without submission', [
      submission(),
      submission({ id: 'k', value: 'w' }),
      execution(2, { value: 'w' }),
    ]));
  test('one key, two jobs', () =>
    finds('submitted twice', [submission({ key: 'k' }), submission({ key: 'k', id: 'other' })]));
  test('one submission, two jobs that ran', () =>
    finds('submitted twice', [...done, execution(5, { id: 'other' })]));
  test('one submission, two jobs in the list', () =>
    finds('submitted twice', [...done, seen('IN_QUEUE', 5, { id: 'other', value: 'v' })]));
  test('a chunk twice', () => finds('wrong stream', [...done, chunk(0), chunk(1), stream(0, 1, 1)]));
  test('chunks out of order', () => finds('wrong stream', [...done, chunk(0), chunk(1), stream(1, 0)]));
  test('a kept chunk that is missing', () => finds('wrong stream', [...done, chunk(0), chunk(1), stream(0)]));
  test('chunks of an attempt that was dropped', () =>
    finds('wrong stream', [
      ...ran,
      execution(3, { marker: 'm2' }),
      result('"b"', 4, { marker: 'm2' }),
      seen('COMPLETED', 5, { output: '"b"' }),
      stream(0),
    ]));
});
