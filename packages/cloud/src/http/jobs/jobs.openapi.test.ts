import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openApiDocument } from '../rest/openapi.ts';
import { sampleApi } from '../rest/sample-api.fixture.ts';
import { jobApiOperations } from './jobs.openapi.ts';
import type { JobRoutesDeps } from './job-operation.ts';
import { JobRoutes } from './jobs.routes.ts';

test('every operation of the job API that is described is served', () => {
  const routes = new JobRoutes({} as JobRoutesDeps);
  const described = jobApiOperations.map(({ path }) => path.split('/')[2] ?? '');
  assert.deepEqual(
    described.filter((operation) => !routes.handles(operation)),
    [],
  );
  assert.deepEqual(described, [
    'run',
    'runsync',
    'status',
    'status-sync',
    'stream',
    'cancel',
    'retry',
    'purge-queue',
    'health',
    'requests',
    'logs',
    'webhooks',
    'webhooks',
  ]);
});

test('every operation is on its page, with curl, Python and TypeScript', () => {
  const page = readFileSync(new URL('../../../../../docs/job-api.md', import.meta.url), 'utf8');
  for (const { method, path } of jobApiOperations) {
    const call = `${method} ${path.replace('/{endpointId}/', '').replace(/\{(\w+)Id\}/, '{$1}')}`;
    const section = page.split(/^## /m).find((text) => text.includes(`\`${call}\``));
    const languages = section?.match(/^```(?:sh \[curl|python \[Python|ts \[TypeScript)\]/gm) ?? [];
    assert.equal(languages.length, 3, `${call} on docs/job-api.md`);
  }
});

test('its errors have a format of their own, beside that of the document', () => {
  const { paths, components } = openApiDocument({
    ...sampleApi,
    prefix: '',
    operations: [...sampleApi.operations, ...jobApiOperations],
  });
  const run = paths['/{endpointId}/run']?.['post'];
  assert.deepEqual(run?.responses['404'], { $ref: '#/components/responses/JobNotFound' });
  assert.deepEqual(components.responses['JobNotFound']?.content, {
    'application/json': { schema: { $ref: '#/components/schemas/JobError' } },
  });
  assert.deepEqual(Object.keys(paths['/{endpointId}/stream/{jobId}']?.['get']?.responses['200'] ?? {}), [
    'description',
    'content',
  ]);
});
