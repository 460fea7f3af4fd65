import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  assertAccessible,
  consoleFixture,
  withoutBrowser,
} from '../../packages/testing/src/console-browser.ts';
import { CPU_HARDWARE, createResource, queueEndpoint } from '../../packages/testing/src/create-resource.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import { DATABASES } from '../../packages/testing/src/test-database.ts';

for (const kind of DATABASES)
  describe(`console: terminals, chat, webhooks, workers and files, ${kind}`, {
    skip: withoutBrowser(),
  }, () => {
    const fixture = consoleFixture(kind, {
      BERTH_RATE_LIMITS: 'off',
      BERTH_WEBHOOKS_ALLOW_PRIVATE: 'true',
      BERTH_WEBHOOKS_ATTEMPTS: '1',
    });
    let page: Page;
    let echo: string;
    let pod: string;
    let receiver: Server;
    const received: string[] = [];

    before(async () => {
      receiver = createServer((request, response) => {
        received.push(request.url ?? '');
        // The first delivery is refused.
        response.writeHead(received.length === 1 ? 400 : 200).end();
      }).listen(0, '127.0.0.1');
      await once(receiver, 'listening');
      echo = await create('/v2/serverless', queueEndpoint('echo', 'local/echo', { min: 1, max: 1 }));
      pod = await create('/v2/pods', {
        name: 'shell',
        image: 'local/shell',
        args: 'sleep 1000',
        cpu: CPU_HARDWARE,
      });
      page = await fixture.signIn();
    });
    after(() => receiver?.close());

    const create = (path: string, body: unknown): Promise<string> =>
      createResource(fixture.operator, path, body);
    const press = (name: string | RegExp) => page.getByRole('button', { name, exact: true }).click();

    test('keys that are typed before the shell is there are not lost', async () => {
      await page.goto(`/pods/${pod}/terminal`);
      await page.locator('.xterm-helper-textarea').focus();
      await page.keyboard.type('echo $((6*7))-early\n');
      await page.locator('.xterm-rows', { hasText: '42-early' }).waitFor();
    });

    test('a pod says how to reach it: by HTTP, by SSH and from a terminal', async () => {
      const listen = `require('net').createServer((socket) => socket.end()).listen(process.env.RUNPOD_TCP_PORT_22)`;
      const id = await create('/v2/pods', {
        name: 'reachable',
        image: 'local/shell',
        args: `${process.execPath} -e "${listen}"`,
        cpu: CPU_HARDWARE,
        ports: ['8000/http', '22/tcp'],
      });
      await page.goto(`/pods/${id}`);
      await page.locator('.command code', { hasText: /^ssh \S+@\S+ -p \d+/ }).waitFor();
      await page.locator('.command code', { hasText: `npx berth exec ${id} sh` }).waitFor();
      const ports = page.getByRole('table', { name: 'Ports' });
      await ports.getByRole('link', { name: 'Open port 8000' }).waitFor();
      await ports.locator('code', { hasText: /:\d+$/ }).waitFor();
      await page.getByRole('link', { name: 'Metrics' }).click();
      await page.getByRole('heading', { name: 'Cost' }).waitFor();
      await assertAccessible(page);
    });

    test('files of this computer are copied into a pod', async () => {
      await page.goto(`/pods/${pod}/files`);
      const choose = page.getByLabel('Files to copy into the pod');
      await choose.setInputFiles([
        { name: 'weights ü.txt', mimeType: 'text/plain', buffer: Buffer.from('tower') },
        { name: 'empty', mimeType: 'text/plain', buffer: Buffer.alloc(0) },
      ]);
      await page.getByText('2 files copied into .').waitFor();
      await page.getByLabel('Path', { exact: true }).fill('weights ü.txt');
      await press('Find');
      await page.getByText('5 B').waitFor();
      await assertAccessible(page);
      await page.getByLabel('Folder', { exact: true }).fill('/no/such/folder');
      await choose.setInputFiles({ name: 'x', mimeType: 'text/plain', buffer: Buffer.from('x') });
      await page
        .getByRole('alert')
        .getByText(/Status 4/)
        .waitFor();
    });

    test('a chat in the playground is answered piece by piece', async () => {
      const id = await create('/v2/serverless', queueEndpoint('chat', 'local/openai', { min: 1, max: 1 }));
      await page.goto(`/serverless/${id}/playground`);
      await press('Chat (OpenAI)');
      await page
        .getByLabel('Body')
        .fill(
          JSON.stringify({ model: 'any', messages: [{ role: 'user', content: 'Castle?' }], stream: true }),
        );
      await press('Run');
      await page.getByText('completed', { exact: true }).waitFor();
      assert.match(await page.getByLabel('Text of the answer').innerText(), /Castle\?/);
      await press('TypeScript');
      assert.match(
        await page.getByLabel('Program', { exact: true }).innerText(),
        /chat\.completions\.create/,
      );
      await assertAccessible(page);
    });

    test('a load balancing endpoint is called from its playground', async () => {
      const id = await create('/v2/serverless', {
        ...queueEndpoint('web', 'local/http-server', { min: 0, max: 1 }),
        type: 'LOAD_BALANCER',
        scaling: { type: 'REQUEST_COUNT', requestCount: 4 },
      });
      await page.goto(`/serverless/${id}/playground`);
      await page.getByLabel('Method').selectOption('POST');
      await page.getByLabel('Path').fill('/echo');
      await page.getByLabel('Body').fill('{"castle": 1}');
      await press('Send');
      await page.getByText('200 OK', { exact: true }).waitFor();
      assert.match(await page.getByLabel('Answer', { exact: true }).innerText(), /"castle": 1/);
      await press('TypeScript');
      assert.match(await page.getByLabel('Program', { exact: true }).innerText(), /echo[^]*castle/);
      // What a worker refuses is an answer too.
      await page.getByLabel('Path').fill('/nothing');
      await press('Send');
      await page.getByText('404 Not Found', { exact: true }).waitFor();
      assert.match(await page.getByLabel('Answer', { exact: true }).innerText(), /there is \/ and \/echo/);
      await page.getByLabel('Path').fill('../elsewhere');
      await page.getByText('The path leads out of the endpoint.').waitFor();
      await assertAccessible(page);
    });

    test('a webhook that was refused is delivered again', async () => {
      const { port } = receiver.address() as AddressInfo;
      await fixture.operator.call('POST', `/v2/${echo}/run`, {
        input: {},
        webhook: `http://127.0.0.1:${port}/hook`,
      });
      await page.goto(`/serverless/${echo}/webhooks`);
      await page.getByRole('cell', { name: /^400/ }).waitFor();
      await page.getByRole('button', { name: /^Redeliver the webhook of job/ }).click();
      await page.getByText('It is delivered again').waitFor();
      await page.locator('.badge', { hasText: 'delivered' }).waitFor();
      assert.ok(received.length >= 2);
      await assertAccessible(page);
    });

    test('the system page uses the words of the field', async () => {
      await page.goto('/system');
      for (const words of ['Queued jobs', 'Active pods', 'the queues are empty'])
        await page.getByText(words, { exact: true }).waitFor();
      await assertAccessible(page);
    });

    test('on a phone the open tab is in view, and nothing is wider than the screen', async () => {
      const phone = await fixture.signIn();
      await phone.setViewportSize({ width: 390, height: 800 });
      for (const path of [
        `/serverless/${echo}/settings`,
        '/docs/configuration',
        '/docs/search?q=cold+start',
      ]) {
        await phone.goto(path);
        await phone.getByRole('heading', { level: 1 }).waitFor();
        assert.equal(await phone.evaluate('document.documentElement.scrollWidth'), 390, path);
      }
      await phone.goto(`/serverless/${echo}/settings`);
      const tab = phone.getByRole('navigation').getByRole('link', { name: 'Settings' });
      await tab.waitFor();
      await waitFor('the tab is in view', async () => {
        const box = await tab.boundingBox();
        return box !== null && box.x >= 0 && box.x + box.width <= 390;
      });
      await phone.context().close();
    });

    // Last: by now the first minute of the worker's history is over.
    test('a worker shows what it uses, has a terminal and a log, and is stopped', async () => {
      await page.goto(`/serverless/${echo}/workers`);
      const rows = page.getByRole('table', { name: 'Workers' }).locator('tbody tr');
      await page.locator('.badge', { hasText: 'idle' }).waitFor();
      const worker = (await rows.first().locator('code').innerText()).trim();
      await press(worker);
      const dialog = page.getByRole('dialog', { name: `Worker ${worker}` });
      await dialog.getByText(/^\d+\.\d\d of 2$/).waitFor();
      await dialog.getByText('Live', { exact: true }).click();
      await dialog.getByRole('img', { name: 'CPUs in use' }).waitFor();
      await assertAccessible(page);
      await waitFor(
        'the history of the worker',
        async () => {
          const { body } = await fixture.operator.call<{ total: { memory: unknown } }>(
            'GET',
            `/v2/serverless/${echo}/workers/${worker}/history`,
          );
          return body.total.memory !== null;
        },
        90_000,
      );
      // The dialog and its range are part of the address.
      await page.waitForURL(/range=live/);
      await page.reload();
      await dialog.getByRole('img', { name: 'CPUs in use' }).waitFor();
      await dialog.getByText('1 hour').click();
      await dialog.getByRole('img', { name: 'Memory', exact: true }).waitFor();
      await dialog.getByText('2 days').click();
      await dialog.getByRole('img', { name: 'CPU cores' }).waitFor();
      await assertAccessible(page);
      await page.keyboard.press('Escape');
      await rows.first().getByRole('button', { name: 'Terminal' }).click();
      await page.locator('.xterm-helper-textarea').focus();
      await page.keyboard.type('echo $((40+2))-worker\n');
      await page.locator('.xterm-rows', { hasText: '42-worker' }).waitFor();
      await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
      await press(`Stop worker ${worker}`);
      await page.getByText('ends when it has finished those that it has').waitFor();
      await press('Stop the worker');
      // The endpoint always has one worker, so another one comes.
      await waitFor('another worker', async () => {
        const shown = await rows.locator('code').allInnerTexts();
        return shown.length === 1 && shown[0]?.trim() !== worker;
      });
      const path = `/v2/serverless/${echo}/workers/${worker}`;
      assert.equal((await fixture.operator.call('POST', `${path}/stop`)).status, 404);
      assert.equal((await fixture.operator.call('GET', `${path}/metrics`)).status, 404);
      assert.equal((await fixture.operator.call('GET', `${path}/history`)).status, 200);
    });
  });
