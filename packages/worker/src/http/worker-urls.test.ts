import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VERSION } from '../version.ts';
import { WorkerUrls } from './worker-urls.ts';

const base = 'https://host/v2/ep';
const full = {
  take: `${base}/job-take/$ID?gpu=A%20B`,
  done: `${base}/job-done/$RUNPOD_POD_ID/$ID?gpu=$RUNPOD_GPU_TYPE_ID`,
  stream: `${base}/job-stream/$RUNPOD_POD_ID/$ID?x=1`,
  ping: `${base}/ping/$RUNPOD_POD_ID?x=1`,
};

describe('worker URLs', () => {
  test('contain the worker and the job where the templates say', () => {
    const addresses = new WorkerUrls(full, 'w$&1');
    assert.equal(addresses.take(1, false), `${base}/job-take/w$&1?gpu=A%20B&job_in_progress=0`);
    assert.equal(
      addresses.take(4, true),
      `${base}/job-take-batch/w$&1?gpu=A%20B&batch_size=4&job_in_progress=1`,
    );
    assert.equal(addresses.cancellations, `${base}/job-stop/w$&1?gpu=A%20B`);
    assert.equal(addresses.channel, `${base}/job-channel/w$&1?gpu=A%20B`);
    assert.equal(
      addresses.done('j-1-u1', true),
      `${base}/job-done/w$&1/j-1-u1?gpu=$RUNPOD_GPU_TYPE_ID&isStream=true`,
    );
    assert.equal(addresses.stream('j'), `${base}/job-stream/w$&1/j?x=1&isStream=false`);
    assert.equal(addresses.ping([]), `${base}/ping/w$&1?x=1&berth_version=${VERSION}`);
    assert.equal(addresses.ping(['a', 'b']), `${base}/ping/w$&1?x=1&job_id=a%2Cb&berth_version=${VERSION}`);
    assert.equal(
      addresses.unhealthy('c', 'r & s'),
      `${base}/ping/w$&1?x=1&status=unhealthy&check=c&reason=r%20%26%20s&berth_version=${VERSION}`,
    );
  });

  test('get a query where there is none, and cannot be derived without the usual path', () => {
    const addresses = new WorkerUrls(
      { take: 'http://host/jobs/$ID', done: 'http://host/done/$ID', stream: undefined, ping: undefined },
      'w',
    );
    assert.equal(addresses.take(1, true), 'http://host/jobs/w?job_in_progress=1');
    assert.equal(addresses.take(2, true), 'http://host/jobs/w?batch_size=2&job_in_progress=1');
    assert.equal(addresses.done('a/b?c', false), 'http://host/done/a%2Fb%3Fc?isStream=false');
    assert.deepEqual(
      [
        addresses.cancellations,
        addresses.channel,
        addresses.stream('j'),
        addresses.ping(['j']),
        addresses.unhealthy('c', 'r'),
      ],
      Array(5).fill(undefined),
    );
  });

  test('a job list that is too long is cut between two ids and marked as partial', () => {
    const ids = Array.from({ length: 5_000 }, (_, n) => `job-${String(n).padStart(20, '0')}`);
    const query = (some: string[], most?: number) =>
      new URL(new WorkerUrls(full, 'w').ping(some, most) ?? '').searchParams;
    const listed = query(ids).get('job_id')?.split(',') ?? [];
    // 25 characters for each, less one comma.
    assert.deepEqual(listed, ids.slice(0, 65_536 / 25));
    assert.equal(query(ids).get('job_ids'), 'partial');
    assert.equal(query(listed).get('job_ids'), null);
    assert.equal(
      new WorkerUrls(full, 'w').ping(['a', 'b', 'c'], 2),
      `${base}/ping/w?x=1&job_id=a%2Cb&job_ids=partial&berth_version=${VERSION}`,
    );
    assert.equal(query(['a', 'b'], 2).get('job_ids'), null);
  });

  test('an id with a lone surrogate still has a URL', () => {
    const addresses = new WorkerUrls(full, 'w');
    assert.match(addresses.done('a\ud800', false), /\/a%EF%BF%BD\?/);
    assert.match(addresses.ping(['a\ud800', 'b']) ?? '', /job_id=a%EF%BF%BD%2Cb&/);
  });
});
