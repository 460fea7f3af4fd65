import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  assertAccessible,
  consoleFixture,
  withoutBrowser,
} from '../../packages/testing/src/console-browser.ts';
import { createResource, queueEndpoint } from '../../packages/testing/src/create-resource.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import { DATABASES } from '../../packages/testing/src/test-database.ts';

interface Job {
  id: string;
  status: string;
}

for (const kind of DATABASES)
  describe(`console: failed requests are edited together and sent again, ${kind}`, {
    skip: withoutBrowser(),
  }, () => {
    const fixture = consoleFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let page: Page;
    let failing: string;
    before(async () => {
      failing = await createResource(
        fixture.operator,
        '/v2/serverless',
        queueEndpoint('failing', 'local/failing'),
      );
      page = await fixture.signIn();
    });

    const jobs = async (query = ''): Promise<Job[]> =>
      (
        await fixture.operator.call<{ jobs: Job[] }>(
          'GET',
          `/v2/serverless/${failing}/jobs?limit=100${query}`,
        )
      ).body.jobs;
    /** Inputs of the jobs that came after these. */
    const newInputs = async (old: Job[]): Promise<unknown[]> => {
      const known = new Set(old.map(({ id }) => id));
      const fresh = (await jobs()).filter(({ id }) => !known.has(id));
      return Promise.all(
        fresh.map(
          async ({ id }) =>
            (await fixture.operator.call<{ input: unknown }>('GET', `/v2/serverless/${failing}/jobs/${id}`))
              .body.input,
        ),
      );
    };
    const dialog = () => page.getByRole('dialog', { name: 'Edit and send again' });
    const edit = () => page.getByRole('button', { name: 'Edit and send again …' }).click();
    async function fail(...inputs: unknown[]): Promise<void> {
      for (const input of inputs) await fixture.operator.call('POST', `/v2/${failing}/runsync`, { input });
      await waitFor('they failed', async () => (await jobs()).every(({ status }) => status === 'FAILED'));
    }

    test('a group of errors: what its inputs have in common is changed, the rest of each stays', async () => {
      await fail(
        { model: 'large', seed: 1, size: { width: 512, height: 512 } },
        { model: 'large', seed: 2, size: { width: 512, height: 256 } },
        'no object',
      );
      const old = await jobs();
      await page.goto(`/serverless/${failing}/requests`);
      await page
        .getByRole('button', { name: /Show jobs of error/ })
        .first()
        .click();
      await page.waitForURL(/fingerprint=/);
      await edit();
      const editor = dialog().getByLabel('Common input');
      assert.deepEqual(JSON.parse(await editor.inputValue()), { model: 'large', size: { width: 512 } });
      const send = dialog().getByRole('button', { name: 'Send 3 jobs' });
      assert.equal(await send.isDisabled(), true);
      await editor.fill('{ "model": "small", "size": {"width": 512}, "seed": null');
      await dialog().locator('.problem').waitFor();
      assert.equal(await send.isDisabled(), true);
      await editor.fill('{ "model": "small", "size": {"width": 512}, "seed": null }');
      // What is sent is shown before.
      const patch = dialog().getByLabel('Patch that is sent', { exact: true });
      assert.deepEqual(JSON.parse(await patch.innerText()), { seed: null, model: 'small' });
      const preview = await dialog().getByRole('region', { name: 'Preview' }).innerText();
      assert.match(preview, /"height": 256/);
      assert.match(preview, /is skipped: its input is not an object/);
      await assertAccessible(page);
      await send.click();
      await page.getByText('2 jobs sent again with the edit').waitFor();
      await dialog().getByText('1 job skipped').waitFor();
      await dialog().getByRole('button', { name: 'Cancel' }).click();
      const inputs = await newInputs(old);
      assert.deepEqual(
        inputs.toSorted((one, other) => JSON.stringify(one).localeCompare(JSON.stringify(other))),
        [
          { model: 'small', size: { width: 512, height: 256 } },
          { model: 'small', size: { width: 512, height: 512 } },
        ],
      );
    });

    test('selected jobs get a whole new input', async () => {
      await waitFor('all have ended', async () => (await jobs()).every(({ status }) => status === 'FAILED'));
      const old = await jobs();
      await page.goto(`/serverless/${failing}/requests`);
      const boxes = page.getByRole('checkbox', { name: /^Select / });
      await boxes.nth(old.length - 1).waitFor();
      await boxes.nth(0).check();
      await boxes.nth(2).check();
      await edit();
      await dialog().getByRole('button', { name: 'The whole input' }).click();
      await dialog().getByLabel('New input').fill('{"fresh": [1, 2]}');
      await dialog().getByRole('button', { name: 'Send 2 jobs' }).click();
      await page.getByText('2 jobs sent again with the edit').waitFor();
      await dialog().waitFor({ state: 'detached' });
      assert.deepEqual(await newInputs(old), [{ fresh: [1, 2] }, { fresh: [1, 2] }]);
    });

    test('more jobs than a page has are all sent', async () => {
      const count = 130;
      await Promise.all(
        Array.from({ length: count }, (_, index) =>
          fixture.operator.call('POST', `/v2/${failing}/run`, { input: { bulk: true, index } }),
        ),
      );
      const matching = async (): Promise<number> =>
        (
          await fixture.operator.call<{ groups: { count: number }[] }>(
            'GET',
            `/v2/serverless/${failing}/errors`,
          )
        ).body.groups.reduce((sum, group) => sum + group.count, 0);
      await waitFor('they failed', async () => (await matching()) >= count);
      await page.goto(`/serverless/${failing}/requests?text=${encodeURIComponent('"bulk":true')}`);
      await page
        .getByRole('checkbox', { name: /^Select / })
        .first()
        .waitFor();
      await edit();
      await dialog().getByRole('button', { name: 'The whole input' }).click();
      await dialog().getByLabel('New input').fill('{"again": 1}');
      await dialog().getByRole('button', { name: 'Send all that match' }).click();
      await page.getByText(`${count} jobs sent again with the edit`).waitFor();
    });

    test('what the server refuses is told in its words, and the edit is kept', async () => {
      await page.goto(`/serverless/${failing}/requests`);
      await page
        .getByRole('checkbox', { name: /^Select / })
        .first()
        .check();
      await edit();
      const large = JSON.stringify({ text: 'x'.repeat(70_000) });
      await dialog().getByLabel('Common input').fill(large);
      await dialog().getByRole('button', { name: 'Send 1 job' }).click();
      await dialog()
        .getByRole('alert')
        .getByText(/inputPatch/)
        .waitFor();
      assert.equal(await dialog().getByLabel('Common input').inputValue(), large);
    });
  });
