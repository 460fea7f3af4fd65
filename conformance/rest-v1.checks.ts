import assert from 'node:assert/strict';
import { SkippedError } from './skipped-error.ts';
import type { ConformanceCheck } from './conformance-check.ts';
import type { Resource } from './deployment.ts';

const group = 'REST v1';

export const restV1Checks: ConformanceCheck[] = [
  {
    group,
    name: 'publishes its description without a key',
    run: async (site) => {
      const { openapi, paths } = await site.expectStatus<{ openapi: string; paths: object }>(
        'v1',
        'GET',
        '/openapi.json',
        200,
        undefined,
        { authorization: '' },
      );
      assert.match(openapi, /^3\./);
      assert.ok(Object.keys(paths).length > 10);
    },
  },
  {
    group,
    name: 'a bad key is 401 with a message',
    run: async (site) => {
      const { message } = await site.expectStatus<{ message: string }>(
        'v1',
        'GET',
        '/templates',
        401,
        undefined,
        {
          authorization: 'Bearer rpa_wrong',
        },
      );
      assert.equal(typeof message, 'string');
    },
  },
  {
    group,
    name: 'templates: created with 200, listed as a bare array, changed, deleted with 204',
    run: async (site) => {
      const name = site.uniqueName();
      const made = await site.create('v1', '/templates', 200, {
        name,
        imageName: 'a/b:1',
        dockerStartCmd: ['run', 'it'],
        env: { A: 'b' },
        ports: ['80/http'],
        containerDiskInGb: 5,
        isServerless: true,
      });
      assert.deepEqual(
        [made['name'], made['imageName'], made['dockerStartCmd'], made['env'], made['ports']],
        [name, 'a/b:1', ['run', 'it'], { A: 'b' }, ['80/http']],
      );
      const all = await site.expectStatus<Resource[]>('v1', 'GET', '/templates', 200);
      assert.ok(Array.isArray(all) && all.some(({ id }) => id === made.id));
      assert.equal(
        (await site.expectStatus('v1', 'PATCH', `/templates/${made.id}`, 200, { readme: 'new' }))['readme'],
        'new',
      );
      assert.equal(
        (await site.expectStatus('v1', 'POST', `/templates/${made.id}/update`, 200, { readme: 'newer' }))[
          'readme'
        ],
        'newer',
      );
      assert.equal(await site.expectStatus('v1', 'DELETE', `/templates/${made.id}`, 204), undefined);
      await site.expectStatus('v1', 'GET', `/templates/${made.id}`, 404);
    },
  },
  {
    group,
    name: 'bad input is 400 and says what is wrong',
    run: async (site) => {
      const { message } = await site.expectStatus<{ message: string }>('v1', 'POST', '/templates', 400, {
        name: 7,
      });
      assert.equal(typeof message, 'string');
    },
  },
  {
    group,
    name: 'network volumes have four fields and only grow',
    run: async (site) => {
      const made = await site.create('v1', '/networkvolumes', 200, {
        name: site.uniqueName(),
        size: 10,
        dataCenterId: await site.dataCenter(),
      });
      assert.deepEqual(Object.keys(made).sort(), ['dataCenterId', 'id', 'name', 'size']);
      assert.equal(
        (await site.expectStatus('v1', 'PATCH', `/networkvolumes/${made.id}`, 200, { size: 20 }))['size'],
        20,
      );
      await site.expectStatus('v1', 'PATCH', `/networkvolumes/${made.id}`, 400, { size: 5 });
    },
  },
  {
    group,
    name: 'registry credentials show an id and a name, nothing more',
    run: async (site) => {
      const made = await site.create('v1', '/containerregistryauth', 200, {
        name: site.uniqueName(),
        username: 'u',
        password: 'secret-password',
      });
      assert.deepEqual(Object.keys(made).sort(), ['id', 'name']);
      const { text } = await site.call('v1', 'GET', `/containerregistryauth/${made.id}`);
      assert.ok(!text.includes('secret-password'));
    },
  },
  {
    group,
    name: 'endpoints follow their template and show what clients write back',
    run: async (site) => {
      const template = await site.create('v1', '/templates', 200, {
        name: site.uniqueName(),
        imageName: site.options.image,
        isServerless: true,
      });
      const made = await site.create('v1', '/endpoints', 200, {
        name: site.uniqueName(),
        templateId: template.id,
        computeType: 'CPU',
        workersMin: 0,
        workersMax: 0,
      });
      assert.deepEqual(
        [
          made['templateId'],
          made['computeType'],
          made['workersMax'],
          made['idleTimeout'],
          made['scalerType'],
          made['scalerValue'],
        ],
        [template.id, 'CPU', 0, 5, 'QUEUE_DELAY', 4],
      );
      for (const key of ['gpuIds', 'locations', 'flashBootType', 'modelReferences', 'networkVolumeIds'])
        assert.ok(key in made, `${key} is missing`);
      assert.equal(
        (await site.expectStatus('v1', 'PATCH', `/endpoints/${made.id}`, 200, { idleTimeout: 60 }))[
          'idleTimeout'
        ],
        60,
      );
      const shown = await site.expectStatus<Resource & { template: Resource }>(
        'v1',
        'GET',
        `/endpoints/${made.id}?includeTemplate=true&includeWorkers=true`,
        200,
      );
      assert.deepEqual([shown.template.id, shown['workers']], [template.id, []]);
      await site.expectStatus('v1', 'DELETE', `/endpoints/${made.id}`, 204);
    },
  },
  {
    group,
    name: 'pods: 201 with integers where clients decode integers; actions answer the pod',
    run: async (site) => {
      if (!site.options.pods) throw new SkippedError('--pods was not given: a pod may cost money');
      const made = await site.create('v1', '/pods', 201, {
        name: site.uniqueName(),
        imageName: site.options.image,
        computeType: 'CPU',
        cpuFlavorIds: ['cpu3c'],
        vcpuCount: 2,
        containerDiskInGb: 5,
        dockerStartCmd: ['sleep', '600'],
        ports: ['8888/http', '22/tcp'],
        env: { A: 'b' },
      });
      for (const key of ['gpuCount', 'volumeInGb', 'containerDiskInGb', 'memoryInGb', 'vcpuCount'])
        assert.ok(Number.isInteger(made[key]), `${key} is ${String(made[key])}`);
      assert.deepEqual(
        [made['imageName'], made['desiredStatus'], typeof made['costPerHr']],
        [site.options.image, 'RUNNING', 'number'],
      );
      const all = await site.expectStatus<Resource[]>(
        'v1',
        'GET',
        '/pods?computeType=CPU&includeMachine=true',
        200,
      );
      assert.ok(all.some(({ id }) => id === made.id));
      assert.equal(
        (await site.expectStatus('v1', 'POST', `/pods/${made.id}/stop`, 200))['desiredStatus'],
        'EXITED',
      );
      assert.equal((await site.expectStatus('v1', 'POST', `/pods/${made.id}/start`, 200)).id, made.id);
      await site.expectStatus('v1', 'DELETE', `/pods/${made.id}`, 204);
    },
  },
  ...['pods', 'endpoints', 'networkvolumes'].map(
    (what): ConformanceCheck => ({
      group,
      name: `billing of ${what} is a bare array`,
      run: async (site) => {
        assert.ok(
          Array.isArray(await site.expectStatus('v1', 'GET', `/billing/${what}?bucketSize=day`, 200)),
        );
      },
    }),
  ),
  {
    group,
    name: 'a method that a path does not have is 405 with Allow',
    run: async (site) => {
      const { status, headers } = await site.call('v1', 'PUT', '/templates', {});
      assert.equal(status, 405);
      assert.match(headers.get('allow') ?? '', /POST/);
    },
  },
];
