import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EventObject } from './kubernetes-objects.ts';
import { PodEvents } from './pod-events.ts';

/** A namespace whose events are listed in 100 ms. */
class EventList {
  now = 0;
  readonly listedAt: number[] = [];
  readonly #events: EventObject[];

  constructor(events: EventObject[]) {
    this.#events = events;
  }

  get<T>(): Promise<T> {
    this.listedAt.push(this.now);
    this.now += 100;
    return Promise.resolve({ items: this.#events, metadata: { resourceVersion: '1' } } as T);
  }
}

function event(uid: string, reason: string): EventObject {
  return { metadata: { name: `${uid}-${reason}`, uid: '' }, involvedObject: { uid }, reason, message: '' };
}

function eventsOf(client: EventList): PodEvents {
  const wait = async (milliseconds: number): Promise<void> => void (client.now += milliseconds);
  return new PodEvents({ client, namespace: 'berth', now: () => client.now, wait });
}

test('one list answers all who ask, each with the events of its pod', async () => {
  const client = new EventList([event('a', 'Pulling'), event('b', 'FailedMount'), event('a', 'Pulled')]);
  const events = eventsOf(client);
  const found = await Promise.all(['a', 'b', 'c'].map((uid) => events.of(uid)));
  assert.deepEqual(
    found.map((some) => some.map(({ reason }) => reason)),
    [['Pulling', 'Pulled'], ['FailedMount'], []],
  );
  assert.equal(client.listedAt.length, 1);
});

test('between two lists is a pause of twenty times as long as one took', async () => {
  const client = new EventList([]);
  const events = eventsOf(client);
  for (let count = 0; count < 3; count += 1) await events.of('a');
  assert.deepEqual(client.listedAt, [0, 2100, 4200]);
});

test('a list that fails is told to those who asked, and the next one is tried', async () => {
  const client = new EventList([]);
  const events = eventsOf(client);
  const list = client.get.bind(client);
  client.get = () => list().then(() => Promise.reject(new Error('away')));
  await Promise.all([assert.rejects(events.of('a'), /away/), assert.rejects(events.of('b'), /away/)]);
  client.get = list;
  assert.deepEqual(await events.of('a'), []);
  assert.equal(client.listedAt.length, 2);
});
