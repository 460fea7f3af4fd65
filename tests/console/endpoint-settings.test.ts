import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  assertAccessible,
  consoleFixture,
  waitUntilLoaded,
  withoutBrowser,
} from '../../packages/testing/src/console-browser.ts';
import { createResource, queueEndpoint } from '../../packages/testing/src/create-resource.ts';
import { DATABASES } from '../../packages/testing/src/test-database.ts';

interface Endpoint {
  workers: { min: number; max: number; idleTimeout?: number };
  scaling: Record<string, unknown>;
  flashboot: string;
  gpu: { pools: string[]; excludedTypes: string[]; count: number } | null;
  cpu?: { id: string; vcpuCount: number }[];
  dataCenterIds: string[];
  networkVolumes: string[];
  timeout: number;
  retention: number | null;
}

for (const kind of DATABASES)
  describe(`console: settings of an endpoint, ${kind}`, { skip: withoutBrowser() }, () => {
    const fixture = consoleFixture(kind, {
      BERTH_RATE_LIMITS: 'off',
      BERTH_GPUS: '2x NVIDIA A40, 2x NVIDIA RTX A6000',
    });
    let page: Page;
    let cpu: string;
    let gpu: string;
    let volume: string;
    before(async () => {
      cpu = await createResource(fixture.operator, '/v2/serverless', queueEndpoint('on CPUs', 'local/echo'));
      const { cpu: _, ...rest } = queueEndpoint('on GPUs', 'local/echo');
      gpu = await createResource(fixture.operator, '/v2/serverless', {
        ...rest,
        gpu: { pools: ['AMPERE_48'], count: 1 },
      });
      volume = await createResource(fixture.operator, '/v2/network-volumes', {
        name: 'models',
        size: 10,
        dataCenter: 'LOCAL-1',
      });
      page = await fixture.signIn();
    });

    const open = async (id: string, tab = page): Promise<void> => {
      await tab.goto(`/serverless/${id}/settings`);
      await tab.getByLabel('Name', { exact: true }).waitFor();
      await waitUntilLoaded(tab);
    };
    const field = (label: string, tab = page) => tab.getByLabel(label, { exact: true });
    const changes = (tab = page) => tab.getByRole('list', { name: 'What is saved' });
    const save = async (tab = page): Promise<void> => {
      await tab.getByRole('button', { name: 'Save', exact: true }).click();
      await tab.getByText('Nothing is changed yet.').waitFor();
    };
    const read = async (id: string): Promise<Endpoint> =>
      (await fixture.operator.call<Endpoint>('GET', `/v2/serverless/${id}`)).body;
    const releases = async (id: string): Promise<number> =>
      (await fixture.operator.call<{ endpointVersion: number }>('GET', `/v2/serverless/${id}/releases`)).body
        .endpointVersion;

    test('scaling is changed without a new release, and what changes is shown before', async () => {
      await open(cpu);
      assert.equal(await page.getByRole('button', { name: 'Save', exact: true }).isDisabled(), true);
      await field('Workers at most').fill('5');
      await field('Idle timeout in seconds').fill('30');
      await field('Seconds that a job may wait').fill('2.5');
      await field('Flash boot').selectOption('FLASHBOOT');
      await field('Execution timeout in seconds').fill('0');
      await field('Results are kept, in seconds').fill('120');
      const shown = await changes().innerText();
      assert.match(shown, /Workers at most: 2 → 5/);
      assert.match(shown, /Execution timeout in seconds: \d+ → no limit/);
      assert.match(shown, /Results are kept, in seconds: the built-in time → 120/);
      assert.equal(await page.getByText('This makes a new release').count(), 0);
      await assertAccessible(page);
      await save();
      const saved = await read(cpu);
      assert.deepEqual(
        [saved.workers, saved.scaling, saved.flashboot, saved.timeout, saved.retention],
        [
          { min: 0, max: 5, idleTimeout: 30 },
          { type: 'QUEUE_DELAY', queueDelay: 2.5 },
          'FLASHBOOT',
          0,
          120_000,
        ],
      );
      assert.equal(await releases(cpu), 0);
      // The other scaler has a value of its own, and keeps no worker without work.
      await field('Add a worker').selectOption('REQUEST_COUNT');
      await field('Requests for each worker').fill('7');
      assert.equal(await field('Idle timeout in seconds').count(), 0);
      await save();
      assert.deepEqual((await read(cpu)).scaling, { type: 'REQUEST_COUNT', requestCount: 7 });
    });

    test('CPU flavours, a volume and a data center make a new release', async () => {
      await open(cpu);
      await field('vCPUs 1').selectOption('4');
      await page.getByRole('button', { name: 'Add another flavour' }).click();
      await field('vCPUs 2').selectOption('2');
      await field('models').check();
      await field('LOCAL-1').check();
      await page.getByText('This makes a new release').waitFor();
      const shown = await changes().innerText();
      assert.match(shown, /CPU flavours: cpu3c × 2 → cpu3c × 4, \w+ × 2/);
      assert.match(shown, /Network volumes: none → models/);
      assert.match(shown, /Data centers: anywhere → LOCAL-1/);
      await save();
      const saved = await read(cpu);
      assert.deepEqual(
        saved.cpu?.map(({ vcpuCount }) => vcpuCount),
        [4, 2],
      );
      assert.deepEqual([saved.networkVolumes, saved.dataCenterIds], [[volume], ['LOCAL-1']]);
      assert.equal(await releases(cpu), 1);
      await page.getByRole('button', { name: 'Remove CPU flavour 2' }).click();
      await field('models').uncheck();
      await save();
      const again = await read(cpu);
      assert.deepEqual([again.cpu?.length, again.networkVolumes], [1, []]);
    });

    test('GPU types are chosen one by one, with how many a worker has', async () => {
      await open(gpu);
      assert.equal(await page.getByLabel(/A40/).first().isChecked(), true);
      await page.getByLabel(/A6000/).first().uncheck();
      await field('GPUs of each worker').fill('2');
      assert.match(await changes().innerText(), /GPU types left out: none → .*NVIDIA RTX A6000/);
      await assertAccessible(page);
      await save();
      const saved = (await read(gpu)).gpu;
      assert.deepEqual([saved?.pools, saved?.count], [['AMPERE_48'], 2]);
      assert.ok(saved?.excludedTypes.includes('NVIDIA RTX A6000'), JSON.stringify(saved));
      await page.getByText(/types of which none is connected/).click();
      await page.getByLabel(/4090/).first().check();
      await save();
      assert.deepEqual((await read(gpu)).gpu?.pools, ['AMPERE_48', 'ADA_24']);
    });

    test('what the server refuses is told in its words, and nothing typed is lost', async () => {
      await open(gpu);
      await field('GPUs of each worker').fill('many');
      await field('Execution timeout in seconds').fill('1');
      await page.getByRole('button', { name: 'Save', exact: true }).click();
      const alert = page.getByRole('alert');
      await alert.getByText(/gpu\.count/).waitFor();
      assert.match(await alert.innerText(), /Status 422 · request [0-9a-f-]{36}/);
      await field('GPUs of each worker').fill('1');
      await page.getByRole('button', { name: 'Save', exact: true }).click();
      await alert
        .getByText(/timeout/i)
        .first()
        .waitFor();
      assert.equal(await field('Execution timeout in seconds').inputValue(), '1');
      await page.getByRole('button', { name: 'Discard' }).click();
      await page.getByText('Nothing is changed yet.').waitFor();
      assert.notEqual(await field('Execution timeout in seconds').inputValue(), '1');
    });

    test('two tabs: what the other one saved is named, and fields that were not typed into follow', async () => {
      const other = await page.context().newPage();
      await open(gpu);
      await open(gpu, other);
      await field('Workers at most').fill('4');
      await field('GPUs of each worker').fill('1');
      await field('Workers at most', other).fill('9');
      await field('Flash boot', other).selectOption('OFF');
      await field('LOCAL-1', other).check();
      await save(other);
      await page.getByText('Changed elsewhere while you typed').waitFor();
      await page.getByText('Workers at most: now 9').waitFor();
      assert.equal(await field('LOCAL-1').isChecked(), true);
      assert.equal(await field('Workers at most').inputValue(), '4');
      await save();
      const saved = await read(gpu);
      assert.deepEqual([saved.workers.max, saved.gpu?.count, saved.dataCenterIds], [4, 1, ['LOCAL-1']]);
      await other.close();
    });
  });
