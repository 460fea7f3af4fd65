import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import type { AccountEvent } from '../../domain/account-event.ts';
import { EventFeed } from './event-feed.ts';
import type { FeedItem } from './event-feed.ts';

let feed: EventFeed;
let stop: AbortController;
beforeEach(() => {
  feed = new EventFeed('start1', () => 7);
  stop = new AbortController();
});
afterEach(() => stop.abort());

const deleted = (endpointId: string): AccountEvent => ({ type: 'endpoint.deleted', endpointId });

function reader(after?: string, accountId = 'one'): AsyncGenerator<FeedItem> {
  return feed.read({ accountId, after, follow: true, accepts: () => true, signal: stop.signal });
}

async function next(from: AsyncGenerator<FeedItem>): Promise<FeedItem> {
  return (await from.next()).value as FeedItem;
}

function endpointOf(item: FeedItem): string {
  return item.kind === 'event' && 'endpointId' in item.stored.event ? item.stored.event.endpointId : '';
}

test('a reader gets the events of its account from the moment that it is ready', async () => {
  const one = reader();
  assert.deepEqual(await next(one), { kind: 'ready', id: 'start1-0', resumed: false });
  feed.add('two', deleted('theirs'));
  feed.add('one', deleted('mine'));
  const item = await next(one);
  assert.equal(item.id, 'start1-2');
  assert.equal(endpointOf(item), 'mine');
});

test('a reader that comes back gets what it missed', async () => {
  const first = reader();
  await next(first);
  feed.add('one', deleted('a'));
  const { id } = await next(first);
  await first.return(undefined);
  feed.add('one', deleted('b'));
  const second = reader(id);
  assert.deepEqual(await next(second), { kind: 'ready', id, resumed: true });
  assert.equal(endpointOf(await next(second)), 'b');
});

test('an id of another start, of the future or of no event is answered with a reset', async () => {
  const open = reader();
  await next(open);
  for (const after of ['start0-1', 'start1-99', 'nonsense', ''])
    assert.deepEqual(await next(reader(after)), { kind: 'reset', id: 'start1-0' }, after);
});

test('a reader that missed events gets a notice, and goes on', async () => {
  const slow = reader();
  await next(slow);
  for (let count = 0; count < 5_000; count += 1) feed.add('one', deleted(`e${count}`));
  assert.deepEqual(await next(slow), { kind: 'reset', id: 'start1-5000' });
  feed.add('one', deleted('later'));
  assert.equal(endpointOf(await next(slow)), 'later');
  assert.equal((await next(reader('start1-1'))).kind, 'reset');
});

test('nothing is recorded without readers', async () => {
  assert.equal(feed.isActive, false);
  feed.add('one', deleted('unseen'));
  assert.deepEqual(await next(reader('start1-0')), { kind: 'reset', id: 'start1-0' });
});

test('readers end with their signal and with the server', async () => {
  const one = reader();
  await next(one);
  const waiting = one.next();
  stop.abort();
  assert.equal((await waiting).done, true);
  stop = new AbortController();
  const two = reader();
  await next(two);
  const last = two.next();
  feed.close();
  assert.equal((await last).done, true);
});
