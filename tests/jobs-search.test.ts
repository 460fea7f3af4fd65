import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

interface JobPage {
  jobs: { id: string; status: string; error: string | null; fingerprint: string; inputPreview: string }[];
  pagination: { nextCursor: string | null; hasNextPage: boolean };
}
interface Groups {
  groups: { fingerprint: string; message: string; count: number; sampleJobId: string }[];
  complete: boolean;
}
interface Bulk {
  done: number;
  jobs: { id: string; newId?: string }[];
  skipped: { id: string; reason: string }[];
  nextCursor: string | null;
}

describe('search of jobs and dead letters in REST v2', () => {
  const fixture = serverFixture('sqlite', { BERTH_RATE_LIMITS: 'off' });
  let ann: TestAccount;
  let jobs: QueueEndpointClient;
  let url: string;
  const failed: string[] = [];
  before(async () => {
    ann = await fixture.createAccount('ann');
    jobs = await createQueueEndpoint(fixture.server.url, ann.key);
    url = `/v2/serverless/${jobs.id}`;
    const worker = jobs.worker();
    for (const n of [1, 2, 3]) {
      const id = await jobs.run({ n, prompt: `fox ${n}` }, n === 1 ? { s3Config: { secret: 'plain' } } : {});
      await worker.take();
      await worker.done(id, { error: n === 3 ? 'out of memory' : `no model ${n}` });
      failed.unshift(id);
    }
  });
  const list = async (query: string): Promise<JobPage> =>
    (await ann.call<JobPage>('GET', `${url}/jobs?${query}`)).body;
  const act = async (action: string, body: unknown): Promise<Bulk> => {
    const answer = await ann.call<Bulk>('POST', `${url}/jobs/${action}`, body);
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  };

  test('jobs are found in pages, and shown with what went in', async () => {
    const first = await list('status=FAILED,TIMED_OUT&limit=2');
    assert.deepEqual(
      first.jobs.map(({ id, status, error, inputPreview }) => [id, status, error, inputPreview]),
      [
        [failed[0], 'FAILED', 'out of memory', '{"n":3,"prompt":"fox 3"}'],
        [failed[1], 'FAILED', 'no model 2', '{"n":2,"prompt":"fox 2"}'],
      ],
    );
    const cursor = first.pagination.nextCursor;
    const second = await list(`status=FAILED,TIMED_OUT&limit=2&cursor=${cursor}`);
    assert.deepEqual(
      second.jobs.map(({ id }) => id),
      [failed[2]],
    );
    assert.equal(second.pagination.hasNextPage, false);
    assert.deepEqual(
      (await list('text=FOX%202')).jobs.map(({ id }) => id),
      [failed[1]],
    );
    const { body } = await ann.call('GET', `${url}/jobs/${failed[1]}`);
    assert.deepEqual(
      [body['input'], body['output'], body['errorDetail']],
      [{ n: 2, prompt: 'fox 2' }, null, 'no model 2'],
    );
  });

  test('failed jobs are grouped, and a group is sent again', async () => {
    const { body } = await ann.call<Groups>('GET', `${url}/errors`);
    assert.deepEqual(
      body.groups.map(({ message, count, sampleJobId }) => [message, count, sampleJobId]),
      [
        ['no model <n>', 2, failed[1]],
        ['out of memory', 1, failed[0]],
      ],
    );
    const { fingerprint } = body.groups[0] ?? assert.fail();
    const sent = await act('redrive', { filter: { fingerprint }, limit: 1 });
    assert.deepEqual([sent.done, sent.jobs[0]?.id, sent.skipped], [1, failed[1], []]);
    const next = await act('redrive', { filter: { fingerprint }, cursor: sent.nextCursor });
    assert.deepEqual([next.done, next.jobs[0]?.id, next.nextCursor], [1, failed[2], null]);
    const edited = await act('redrive', { ids: [failed[0]], input: { n: 33 } });
    const worker = jobs.worker();
    const requests: unknown[] = [];
    for (let n = 0; n < 3; n += 1) requests.push(await worker.take());
    assert.deepEqual(
      requests.map((request) => (request as { input: { n: number } }).input.n),
      [2, 1, 33],
    );
    assert.deepEqual((requests[1] as { s3Config: unknown }).s3Config, { secret: 'plain' });
    assert.equal((requests[2] as { id: string }).id, edited.jobs[0]?.newId);
    const cancelled = await act('cancel', { filter: { status: ['IN_PROGRESS'] } });
    assert.equal(cancelled.done, 3);
    const retried = await act('retry', { filter: {} });
    assert.deepEqual(
      retried.jobs.map(({ id }) => id),
      failed,
    );
    assert.equal((await act('cancel', { filter: {} })).done, 3);
  });

  test('many jobs are sent again with edited inputs, by a patch or one by one', async () => {
    const worker = jobs.worker();
    const inputs = async (): Promise<unknown[]> => {
      const found: unknown[] = [];
      for (let n = 0; n < 2; n += 1) found.push(((await worker.take()) as { input: unknown }).input);
      return found;
    };
    const ids = failed.slice(1);
    const patched = await act('redrive', { ids, inputPatch: { prompt: null, size: { w: 8 } } });
    assert.deepEqual([patched.done, patched.skipped], [2, []]);
    assert.deepEqual(await inputs(), [
      { n: 2, size: { w: 8 } },
      { n: 1, size: { w: 8 } },
    ]);
    const [first = '', second = ''] = ids;
    const edited = await act('redrive', {
      inputs: [
        { id: first, input: 'two' },
        { id: second, input: [1] },
        { id: 'nothing', input: 1 },
      ],
    });
    assert.deepEqual([edited.done, edited.skipped.map(({ id }) => id)], [2, ['nothing']]);
    assert.deepEqual(await inputs(), ['two', [1]]);
    const filter = { filter: { status: ['CANCELLED'], text: 'fox 2' }, limit: 1, inputPatch: { n: 22 } };
    assert.equal((await act('redrive', filter)).done, 1);
    assert.partialDeepStrictEqual(await worker.take(), { input: { n: 22, prompt: 'fox 2' } });
  });

  test('bad input, foreign endpoints and keys without the scope are refused', async () => {
    const status = async (method: string, path: string, body?: unknown, key = ann.key): Promise<number> =>
      (await fixture.client(key).call(method, path, body)).status;
    assert.equal(await status('GET', `${url}/jobs?status=DONE`), 422);
    assert.equal(await status('GET', `${url}/jobs?cursor=x`), 422);
    assert.equal(await status('GET', `${url}/jobs?from=yesterday`), 422);
    assert.equal(await status('GET', `${url}/jobs/nothing`), 404);
    assert.equal(await status('POST', `${url}/jobs/retry`, {}), 422);
    assert.equal(await status('POST', `${url}/jobs/retry`, { ids: ['a'], filter: {} }), 422);
    assert.equal(await status('POST', `${url}/jobs/redrive`, { filter: {}, input: 1 }), 422);
    assert.equal(await status('POST', `${url}/jobs/redrive`, { ids: ['a'], input: null }), 422);
    for (const body of [
      { inputs: [{ id: 'a', input: null }] },
      { inputs: [{ id: 'a', input: 1 }], filter: {} },
      { ids: ['a'], input: 1, inputPatch: {} },
      { ids: ['a', 'b'], input: 1 },
      { ids: ['a'], inputPatch: [1] },
      { filter: {}, inputPatch: { text: 'x'.repeat(65_536) } },
    ])
      assert.equal(await status('POST', `${url}/jobs/redrive`, body), 422, JSON.stringify(body).slice(0, 80));
    const { key: other } = await fixture.createAccount('bob');
    assert.equal(await status('GET', `${url}/jobs`, undefined, other), 404);
    const { body } = await ann.call<{ key: string }>('POST', '/v2/account/api-keys', {
      name: 'rest only',
      access: 'RESTRICTED',
      scopes: { rest: 'WRITE', graphql: 'NONE', serverless: 'NONE' },
    });
    assert.equal(await status('GET', `${url}/jobs`, undefined, body.key), 403);
    assert.equal(await status('GET', url, undefined, body.key), 200);
  });
});
