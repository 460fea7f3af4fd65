import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import http from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import type { JobConsumer } from '../job-source.ts';
import { WorkerLog } from '../worker-log.ts';
import { SHORT_TIMINGS } from '../../../testing/src/worker-sdk/short-timings.ts';
import { WorkerUrls } from './worker-urls.ts';
import { HttpClient } from './http-client.ts';
import { JobPosts } from './job-posts.ts';
import { TakeLoop } from './take-loop.ts';

const LIMIT = { timeout: 15_000 };

describe('takes whose response has started', () => {
  /** Uses the take loop when a response has started. The rest gets 20 ms once it is not wanted any more. */
  async function withBegunAnswer(
    use: (takes: TakeLoop, response: ServerResponse, delivered: Promise<string>) => Promise<void>,
  ): Promise<void> {
    const server = http.createServer(
      (_request, response) => void response.writeHead(200, { 'content-type': 'application/json' }).write(' '),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const addresses = new WorkerUrls(
      { take: `${base}/job-take/$ID`, done: base, stream: undefined, ping: undefined },
      'w',
    );
    const options = {
      urls: addresses,
      http: new HttpClient('', 20),
      log: new WorkerLog({}, () => undefined),
      timings: SHORT_TIMINGS,
    };
    const delivered = Promise.withResolvers<string>();
    const consumer: JobConsumer = {
      concurrency: 1,
      capacity: () => 1,
      minBatch: () => 1,
      deliver: ({ job }) => delivered.resolve(job.id),
      abortJob: () => false,
      jobIds: () => [],
    };
    const begun = Promise.withResolvers<void>();
    const onBegun = (): void => void setImmediate(begun.resolve);
    subscribe('http.client.response.finish', onBegun);
    const asked = once(server, 'request') as Promise<[unknown, ServerResponse]>;
    const takes = new TakeLoop({ ...options, posts: new JobPosts(options), consumer, pingMs: 1_000 });
    try {
      const [, response] = await asked;
      await begun.promise;
      await use(takes, response, delivered.promise);
    } finally {
      unsubscribe('http.client.response.finish', onBegun);
      server.close();
      server.closeAllConnections();
      await takes.stop();
      options.http.close();
    }
  }

  test('end without it where it hangs', LIMIT, async () => {
    await withBegunAnswer((takes) => takes.stop());
  });

  test('end with it where it completes in time', LIMIT, async () => {
    await withBegunAnswer(async (takes, response, delivered) => {
      response.end('{"id":"x"}');
      await takes.stop();
      assert.equal(await delivered, 'x');
    });
  });

  test('read it whole where only the room has shrunk', LIMIT, async () => {
    await withBegunAnswer(async (takes, response, delivered) => {
      await takes.capacityShrank();
      setTimeout(() => response.end('{"id":"x"}'), 100);
      assert.equal(await delivered, 'x');
    });
  });
});
