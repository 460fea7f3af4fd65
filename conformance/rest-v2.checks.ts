import assert from 'node:assert/strict';
import { SkippedError } from './skipped-error.ts';
import type { ConformanceCheck } from './conformance-check.ts';
import type { Deployment, Resource } from './deployment.ts';

const group = 'REST v2';

interface Problem {
  title: string;
  status: number;
  detail: string;
  errors?: string[];
}

async function expectProblem(
  site: Deployment,
  method: string,
  path: string,
  status: number,
  body?: unknown,
  headers?: Record<string, string>,
): Promise<Problem> {
  const answer = await site.call<Problem>('v2', method, path, body, headers);
  assert.equal(answer.status, status, answer.text.slice(0, 160));
  assert.match(answer.headers.get('content-type') ?? '', /^application\/problem\+json/);
  assert.deepEqual(
    [typeof answer.body.title, answer.body.status, typeof answer.body.detail],
    ['string', status, 'string'],
  );
  return answer.body;
}

export const restV2Checks: ConformanceCheck[] = [
  {
    group,
    name: 'publishes its description, and every answer has a request id',
    run: async (site) => {
      const { status, headers, body } = await site.call<{ openapi: string }>(
        'v2',
        'GET',
        '/openapi.json',
        undefined,
        { authorization: '' },
      );
      assert.equal(status, 200);
      assert.match(body.openapi, /^3\./);
      assert.ok(headers.get('x-request-id'));
    },
  },
  {
    group,
    name: 'a missing key is a 401 problem',
    run: async (site) =>
      void (await expectProblem(site, 'GET', '/templates', 401, undefined, { authorization: '' })),
  },
  {
    group,
    name: 'what is not there is a 404 problem',
    run: async (site) => void (await expectProblem(site, 'GET', '/templates/nosuchtemplate', 404)),
  },
  {
    group,
    name: 'a key that a body does not have is a 422 that names it; in a query it is ignored',
    run: async (site) => {
      const { errors } = await expectProblem(site, 'POST', '/network-volumes', 422, {
        name: 'x',
        size: 10,
        dataCenterId: 'x',
      });
      assert.ok(
        errors?.some((error) => error.includes('dataCenterId')),
        String(errors),
      );
      await site.expectStatus('v2', 'GET', '/templates?noSuchKey=1', 200);
    },
  },
  {
    group,
    name: 'templates: 201, wrapped and paged lists, PATCH changes what it says, 204',
    run: async (site) => {
      const made = await site.create('v2', '/templates', 201, {
        name: site.uniqueName(),
        image: 'a/b:1',
        cmd: ['run', 'two words'],
        env: { A: 'b', B: 'c' },
        serverless: true,
      });
      assert.deepEqual(
        [made['cmd'], made['registry'], made['startSsh'], made['startJupyter'], made['category']],
        [['run', 'two words'], null, true, true, 'NVIDIA'],
      );
      await site.create('v2', '/templates', 201, { name: site.uniqueName(), image: 'a/b:1' });
      const page = await site.expectStatus<{
        templates: Resource[];
        pagination: { nextCursor: string | null; hasNextPage: boolean };
      }>('v2', 'GET', '/templates?limit=1', 200);
      assert.deepEqual(
        [page.templates.length, page.pagination.hasNextPage, typeof page.pagination.nextCursor],
        [1, true, 'string'],
      );
      const next = await site.expectStatus<{ templates: Resource[] }>(
        'v2',
        'GET',
        `/templates?limit=1&cursor=${encodeURIComponent(page.pagination.nextCursor ?? '')}`,
        200,
      );
      assert.notEqual(next.templates[0]?.id, page.templates[0]?.id);
      await expectProblem(site, 'GET', '/templates?cursor=nonsense', 422);
      assert.deepEqual(
        (await site.expectStatus('v2', 'PATCH', `/templates/${made.id}`, 200, { env: { C: 'd' } }))['env'],
        { C: 'd' },
      );
      await site.expectStatus('v2', 'DELETE', `/templates/${made.id}`, 204);
    },
  },
  {
    group,
    name: 'network volumes: larger is fine, smaller is 400',
    run: async (site) => {
      const dataCenter = await site.dataCenter();
      const made = await site.create('v2', '/network-volumes', 201, {
        name: site.uniqueName(),
        size: 10,
        dataCenter,
      });
      assert.deepEqual([made['dataCenter'], made['size']], [dataCenter, 10]);
      assert.equal(
        (await site.expectStatus('v2', 'PATCH', `/network-volumes/${made.id}`, 200, { size: 12 }))['size'],
        12,
      );
      await expectProblem(site, 'PATCH', `/network-volumes/${made.id}`, 400, { size: 10 });
    },
  },
  {
    group,
    name: 'registries and delegations',
    run: async (site) => {
      const made = await site.create('v2', '/registries', 201, {
        name: site.uniqueName(),
        username: 'u',
        password: 'p',
      });
      assert.deepEqual(Object.keys(made).sort(), ['id', 'name']);
      const delegation = await site.create('v2', '/registries/delegations', 201, {
        resource: 'arn:aws:ecr:us-east-1:123456789012:repository/app',
      });
      const { delegations } = await site.expectStatus<{ delegations: Resource[] }>(
        'v2',
        'GET',
        '/registries/delegations',
        200,
      );
      assert.ok(delegations.some(({ id }) => id === delegation.id));
    },
  },
  {
    group,
    name: 'secrets never show their value, and a name is taken once',
    run: async (site) => {
      const name = site.uniqueName().replaceAll('-', '_');
      const made = await site.create('v2', '/account/secrets', 201, {
        name,
        value: 'very-secret',
        description: 'd',
      });
      const { text } = await site.call('v2', 'GET', '/account/secrets');
      assert.ok(text.includes(made.id) && !text.includes('very-secret'));
      await expectProblem(site, 'POST', '/account/secrets', 409, { name, value: 'x' });
      assert.equal(
        (await site.expectStatus('v2', 'PATCH', `/account/secrets/${made.id}`, 200, { description: 'e' }))[
          'description'
        ],
        'e',
      );
    },
  },
  {
    group,
    name: 'SSH keys are replaced as a whole',
    run: async (site) => {
      const before = await site.expectStatus<{ keys: string[] }>('v2', 'GET', '/account/ssh-keys', 200);
      site.onCleanup(() => site.call('v2', 'PUT', '/account/ssh-keys', before));
      const keys = [...before.keys, 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJx conformance'];
      assert.deepEqual(
        (await site.expectStatus<{ keys: string[] }>('v2', 'PUT', '/account/ssh-keys', 200, { keys })).keys,
        keys,
      );
      await expectProblem(site, 'PUT', '/account/ssh-keys', 422, { keys: ['not a key'] });
    },
  },
  {
    group,
    name: 'the catalog: availability goes with a product',
    run: async (site) => {
      const { gpus } = await site.expectStatus<{ gpus: Resource[] }>(
        'v2',
        'GET',
        '/catalog/gpus?include=AVAILABILITY&product=POD&count=1',
        200,
      );
      const [first] = gpus;
      assert.ok(
        first !== undefined && ['NONE', 'LOW', 'MEDIUM', 'HIGH'].includes(String(first['availability'])),
      );
      assert.equal(
        (await site.expectStatus('v2', 'GET', `/catalog/gpus/${encodeURIComponent(first.id)}`, 200)).id,
        first.id,
      );
      await expectProblem(site, 'GET', '/catalog/gpus?product=POD', 400);
      await expectProblem(site, 'GET', '/catalog/gpus/no%20such%20gpu', 404);
      assert.ok(
        (await site.expectStatus<{ cpus: Resource[] }>('v2', 'GET', '/catalog/cpus', 200)).cpus.length > 0,
      );
      assert.ok(
        Array.isArray(
          (await site.expectStatus<{ templates: Resource[] }>('v2', 'GET', '/catalog/templates', 200))
            .templates,
        ),
      );
    },
  },
  {
    group,
    name: 'endpoints: request addresses, releases, workers; the kind of compute stays',
    run: async (site) => {
      const made = await site.endpoint();
      const urls = made['requestUrls'] as Record<string, string>;
      assert.deepEqual(Object.keys(urls).sort(), [
        'cancel',
        'health',
        'purgeQueue',
        'retry',
        'run',
        'runSync',
        'status',
        'stream',
      ]);
      assert.ok(urls['status']?.endsWith(`/${made.id}/status/{job_id}`), urls['status']);
      assert.deepEqual([made['timeout'], made['flashboot'], made['type']], [300_000, 'OFF', 'QUEUE']);
      await site.expectStatus('v2', 'PATCH', `/serverless/${made.id}`, 200, { env: { A: 'b' } });
      const { releases, endpointVersion } = await site.expectStatus<{
        releases: Resource[];
        endpointVersion: number;
      }>('v2', 'GET', `/serverless/${made.id}/releases`, 200);
      assert.ok(releases.length > 0 && Number.isInteger(endpointVersion));
      const { workers, summary } = await site.expectStatus<{
        workers: Resource[];
        summary: { total: number };
      }>('v2', 'GET', `/serverless/${made.id}/workers`, 200);
      assert.deepEqual([workers, summary.total], [[], 0]);
      await expectProblem(site, 'PATCH', `/serverless/${made.id}`, 400, { gpu: { pools: ['ADA_24'] } });
      assert.deepEqual(
        (await site.expectStatus<{ builds: Resource[] }>('v2', 'GET', `/serverless/${made.id}/builds`, 200))
          .builds,
        [],
      );
    },
  },
  {
    group,
    name: 'endpoints: load balancing wants a request count; a queue by count has no idle timeout',
    run: async (site) => {
      const body = {
        name: site.uniqueName(),
        image: site.options.image,
        cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
        workers: { min: 0, max: 0 },
      };
      for (const wrong of [
        { ...body, type: 'LOAD_BALANCER', scaling: { type: 'QUEUE_DELAY', queueDelay: 4 } },
        {
          ...body,
          type: 'QUEUE',
          scaling: { type: 'REQUEST_COUNT', requestCount: 1 },
          workers: { min: 0, max: 0, idleTimeout: 5 },
        },
      ]) {
        const { status } = await site.call('v2', 'POST', '/serverless', wrong);
        assert.ok(status === 400 || status === 422, `answered ${status}`);
      }
      const made = await site.endpoint({
        type: 'LOAD_BALANCER',
        scaling: { type: 'REQUEST_COUNT', requestCount: 1 },
      });
      assert.deepEqual(Object.keys(made['requestUrls'] as object).sort(), ['base', 'health']);
    },
  },
  {
    group,
    name: 'pods: one of gpu and cpu, honest states, actions that fit, a log that can be followed',
    run: async (site) => {
      await expectProblem(site, 'POST', '/pods', 400, { name: site.uniqueName(), image: site.options.image });
      if (!site.options.pods) throw new SkippedError('--pods was not given: a pod may cost money');
      const made = await site.create('v2', '/pods', 201, {
        name: site.uniqueName(),
        image: site.options.image,
        cpu: { id: 'cpu3c', vcpuCount: 2 },
        cmd: ['sleep', '600'],
      });
      assert.deepEqual([made['template'], made['locked'], made['ports']], [null, false, []]);
      const running = await site.waitFor('the pod runs', async () => {
        const pod = await site.expectStatus('v2', 'GET', `/pods/${made.id}`, 200);
        return pod['status'] === 'RUNNING' && pod;
      });
      assert.deepEqual((running['actions'] as string[]).toSorted(), ['restart', 'stop', 'terminate']);
      const stopped = await site.expectStatus('v2', 'POST', `/pods/${made.id}/action`, 200, {
        action: 'stop',
      });
      assert.deepEqual([stopped['status'], stopped['runtime'], stopped['cost']], ['EXITED', null, 0]);
      await expectProblem(site, 'POST', `/pods/${made.id}/action`, 409, { action: 'stop' });
      await expectProblem(site, 'POST', `/pods/${made.id}/action`, 422, { action: 'reset' });
      await site.expectStatus('v2', 'DELETE', `/pods/${made.id}`, 204);
      await expectProblem(site, 'GET', `/pods/${made.id}`, 404);
    },
  },
  {
    group,
    name: 'clusters are listed',
    run: async (site) =>
      assert.ok(
        Array.isArray(
          (await site.expectStatus<{ clusters: Resource[] }>('v2', 'GET', '/clusters', 200)).clusters,
        ),
      ),
  },
  ...['', '/pods', '/serverless', '/endpoints', '/network-volumes', '/clusters'].map(
    (path): ConformanceCheck => ({
      group,
      name: `billing${path} has records and totals`,
      run: async (site) => {
        const { records, metadata } = await site.expectStatus<{
          records: unknown[];
          metadata: { recordCount: number; totals: object };
        }>('v2', 'GET', `/billing${path}?lastN=2&bucketSize=day`, 200);
        assert.ok(
          Array.isArray(records) &&
            Number.isInteger(metadata.recordCount) &&
            typeof metadata.totals === 'object',
        );
        await expectProblem(site, 'GET', `/billing${path}?lastN=2&startTime=2026-01-01T00:00:00Z`, 400);
      },
    }),
  ),
];
