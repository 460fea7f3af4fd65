import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { WorkerLog } from '../worker-log.ts';
import { SHORT_TIMINGS } from '../../../testing/src/worker-sdk/short-timings.ts';
import { WorkerUrls } from './worker-urls.ts';
import { HttpClient } from './http-client.ts';
import { JobPosts } from './job-posts.ts';

const LIMIT = { timeout: 15_000 };
const HOUR = 3_600_000;
const WANTED = new AbortController().signal;

interface Heard {
  method: string | undefined;
  at: number;
}

/** A server that answers each post from a list, in turn, and then 200. */
async function withPosts(
  answers: [status: number, headers?: http.OutgoingHttpHeaders][],
  use: (posts: JobPosts, heard: Heard[], log: string[]) => Promise<void>,
  { apiKey = 'k', tooMany = 50, refusedResult = 0 } = {},
): Promise<void> {
  const heard: Heard[] = [];
  const log: string[] = [];
  const server = http.createServer((request, response) => {
    const [status, headers] = answers[heard.length] ?? [200];
    heard.push({ method: request.method, at: Date.now() });
    response.writeHead(status, headers).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v2/ep1`;
  const client = new HttpClient(apiKey, SHORT_TIMINGS.partialResponseTimeout);
  try {
    const addresses = new WorkerUrls(
      {
        take: `${base}/job-take/$ID`,
        done: `${base}/job-done/$ID`,
        stream: `${base}/job-stream/$ID`,
        ping: undefined,
      },
      'w',
    );
    await use(
      new JobPosts({
        urls: addresses,
        http: client,
        log: new WorkerLog({}, (line) => log.push(line)),
        timings: { ...SHORT_TIMINGS, rateLimitDelay: tooMany, refusedResultRetry: refusedResult },
      }),
      heard,
      log,
    );
  } finally {
    client.close();
    server.closeAllConnections();
    server.close();
  }
}

const send = {
  result: (posts: JobPosts) => posts.result('j', '{}', false, WANTED),
  chunk: (posts: JobPosts) =>
    posts.chunk('j', { body: '{}', chunkId: undefined, retryIfRefused: true }, WANTED),
};

describe('posts', () => {
  test('pause after 429 for as long as the server asks', LIMIT, async () => {
    for (const post of Object.values(send)) {
      await withPosts(
        [[429], [429, { 'retry-after': '0.4' }]],
        async (posts, heard) => {
          await post(posts);
          const [first = 0, second = 0, third = 0] = heard.map(({ at }) => at);
          assert.ok(
            second - first >= 140 && third - second >= 390,
            `${second - first} and ${third - second} ms`,
          );
        },
        { tooMany: 150 },
      );
    }
  });

  test('follow redirects that keep the method and body, and otherwise retry', LIMIT, async () => {
    // The time for refusals is zero here, so anything that counted as one would be dropped immediately.
    const location = '/elsewhere';
    for (const post of Object.values(send)) {
      await withPosts(
        [
          [307, { location }],
          [308, { location }],
          [301, { location }],
          [302, { location }],
          [303, { location }],
          [307],
          [308, { location: 'ftp://127.0.0.1/' }],
        ],
        async (posts, heard, log) => {
          await post(posts);
          assert.deepEqual(
            heard.map(({ method }) => method),
            Array(8).fill('POST'),
          );
          assert.equal(log.filter((line) => line.includes('given up')).length, 0);
        },
      );
    }
  });

  test(
    'are not dropped sooner when the clock is set ahead, whether refused or while the worker stops',
    LIMIT,
    async (t) => {
      const now = Date.now.bind(Date);
      let looks = 0;
      t.mock.method(Date, 'now', () => now() + HOUR * (looks += 1));
      for (const [status, leaves] of [
        [400, false],
        [500, true],
      ] as const) {
        for (const post of Object.values(send)) {
          await withPosts(
            [[status]],
            async (posts, heard) => {
              if (leaves) posts.startFinalDeadline();
              await post(posts);
              assert.equal(heard.length, 2);
            },
            { refusedResult: HOUR / 2 },
          );
        }
      }
    },
  );

  test('that cannot be built are dropped immediately', LIMIT, async () => {
    for (const post of Object.values(send)) {
      await withPosts(
        [],
        async (posts, heard, log) => {
          await post(posts);
          assert.deepEqual(heard, []);
          assert.match(
            log.join(''),
            /^ERROR \| j \| The (result|chunk) was given up: Invalid character in header content/,
          );
        },
        { apiKey: 'a\nb' },
      );
    }
  });

  test('a result is dropped where even its error is too large', LIMIT, async () => {
    await withPosts([[413], [413]], async (posts, heard, log) => {
      await send.result(posts);
      assert.equal(heard.length, 2);
      assert.match(log.at(-1) ?? '', /given up/);
    });
  });
});
