import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventBus } from './event-bus.ts';

interface TestEvents {
  opened: { id: string };
  closed: { id: string };
}

function testBus(): { bus: EventBus<TestEvents>; errors: unknown[] } {
  const errors: unknown[] = [];
  return { bus: new EventBus((error, event) => void errors.push([error, event])), errors };
}

test('an event reaches its subscribers at once, in the order in which they subscribed', () => {
  const { bus } = testBus();
  const calls: string[] = [];
  bus.subscribe('opened', ({ id }) => calls.push(`first ${id}`));
  bus.subscribe('opened', ({ id }) => calls.push(`second ${id}`));
  bus.subscribe('closed', ({ id }) => calls.push(`closed ${id}`));
  bus.publish('opened', { id: 'a' });
  assert.deepEqual(calls, ['first a', 'second a']);
});

test('a listener that throws is reported and does not stop the others', () => {
  const { bus, errors } = testBus();
  const calls: string[] = [];
  const error = new Error('broken');
  bus.subscribe('opened', () => {
    throw error;
  });
  bus.subscribe('opened', ({ id }) => calls.push(id));
  bus.publish('opened', { id: 'a' });
  assert.deepEqual(calls, ['a']);
  assert.deepEqual(errors, [[error, 'opened']]);
});

test('a listener may unsubscribe while its event is published', () => {
  const { bus } = testBus();
  const calls: string[] = [];
  const unsubscribe = bus.subscribe('opened', () => {
    calls.push('once');
    unsubscribe();
  });
  bus.subscribe('opened', () => calls.push('always'));
  bus.publish('opened', { id: 'a' });
  bus.publish('opened', { id: 'b' });
  assert.deepEqual(calls, ['once', 'always', 'always']);
});
