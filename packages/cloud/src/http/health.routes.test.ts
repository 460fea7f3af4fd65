import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify from 'fastify';
import { BerthError } from '../support/errors.ts';
import { HttpMetrics } from './metrics.ts';
import { healthRoutes } from './health.routes.ts';

test('a server that takes no writes is alive, and not ready for the reason that it gives', async () => {
  const app = Fastify();
  let problem: Error | undefined;
  healthRoutes(app, {
    metrics: new HttpMetrics(),
    ready: async () => {
      if (problem !== undefined) throw problem;
    },
  });
  const ask = async (url: string): Promise<[number, unknown]> => {
    const { statusCode, body } = await app.inject(url);
    return [statusCode, JSON.parse(body)];
  };
  assert.deepEqual(await ask('/readyz'), [200, { status: 'ready' }]);
  problem = new BerthError('unavailable', 'the disk is full', { refusesWrites: true });
  assert.deepEqual(await ask('/readyz'), [503, { status: 'not ready', reason: 'the disk is full' }]);
  problem = new Error('secret details');
  assert.deepEqual(await ask('/readyz'), [
    503,
    { status: 'not ready', reason: 'the database does not answer' },
  ]);
  assert.deepEqual(await ask('/healthz'), [200, { status: 'ok' }]);
  await app.close();
});

test('the metrics are for those whom the check lets pass, and health for everybody', async () => {
  const app = Fastify();
  healthRoutes(app, {
    metrics: new HttpMetrics(),
    ready: async () => undefined,
    checkMetricsKey: async (key) => {
      if (key !== 'of-the-operator') throw new BerthError('unauthenticated', 'missing bearer token');
    },
  });
  const status = async (url: string, headers: Record<string, string> = {}): Promise<number> =>
    (await app.inject({ url, headers })).statusCode;
  assert.notEqual(await status('/metrics'), 200);
  assert.equal(await status('/metrics', { authorization: 'Bearer of-the-operator' }), 200);
  assert.equal(await status('/healthz'), 200);
  await app.close();
});
