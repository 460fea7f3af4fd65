import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { newJob } from '../../queue/job-submission.ts';
import type { JobWithPayloads } from '../../domain/job-records.ts';
import { BerthError } from '../../support/errors.ts';
import { abortOnClose } from '../raw-http.ts';
import { sendJobError } from './jobs.errors.ts';
import { sendJobList } from './job-list-response.ts';

const ENDPOINT = {
  id: 'e',
  accountId: 'a',
  executionTimeout: 0,
  jobTtl: 1_000,
  retention: null,
  maxRetries: 1,
};
const jobOf = (characters: number): JobWithPayloads =>
  newJob(ENDPOINT, 'a', `{"input":"${'x'.repeat(characters)}"}`, {}, 1, 0);

/** What a client gets of a list that comes in these pieces. */
async function answerOf(pieces: () => AsyncIterable<JobWithPayloads[]>): Promise<Response> {
  const server = createServer((_, response) => {
    sendJobList(response, pieces(), abortOnClose(response)).catch(() =>
      sendJobError(response, new BerthError('unavailable', 'the database is away')),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    headers: { connection: 'close' },
  });
  server.close();
  return answer;
}

test('a list that fails before it has begun is a failure', async () => {
  const answer = await answerOf(async function* () {
    yield [jobOf(10)];
    throw new Error('away');
  });
  assert.deepEqual([answer.status, await answer.json()], [503, { error: 'the database is away' }]);
});

test('a list that fails in the middle is cut off: it never looks complete', async () => {
  const answer = await answerOf(async function* () {
    yield [jobOf(3 * 1024 * 1024)];
    throw new Error('away');
  });
  assert.equal(answer.status, 200);
  await assert.rejects(answer.text());
});

test('pieces without a job leave no trace in it', async () => {
  const answer = await answerOf(async function* () {
    yield [];
    yield [jobOf(2 * 1024 * 1024)];
    yield [];
    yield [jobOf(1)];
  });
  assert.equal(((await answer.json()) as { requests: unknown[] }).requests.length, 2);
});
