import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  assertAccessible,
  consoleFixture,
  withoutBrowser,
} from '../../packages/testing/src/console-browser.ts';
import { DATABASES } from '../../packages/testing/src/test-database.ts';

for (const kind of DATABASES)
  describe(`signing in to the console, ${kind}`, { skip: withoutBrowser() }, () => {
    const fixture = consoleFixture(kind);

    test('a browser is sent to the login page, and from there to where it wanted to go', async () => {
      const page = await fixture.visit();
      await page.goto('/');
      assert.equal(new URL(page.url()).pathname, '/login');
      await assertAccessible(page);
      await page.goto('/serverless');
      await page.locator('input[name=key]').fill(fixture.server.key);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'Serverless' }).waitFor();
      const [cookie] = await page.context().cookies();
      assert.deepEqual([cookie?.httpOnly, cookie?.sameSite], [true, 'Lax']);
      assert.doesNotMatch(
        JSON.stringify((await page.context().storageState()).origins),
        /rpa_|bst_/,
        'neither the key nor the token is kept where scripts reach it',
      );
      await page.context().close();
    });

    test('a wrong key is refused in words', async () => {
      const page = await fixture.visit();
      await page.goto('/login');
      await page.getByLabel('API key').fill('rpa_WRONG');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('This is not a valid key').waitFor();
      await page.context().close();
    });

    test('a link signs in once', async () => {
      const { body } = await fixture.operator.call<{ url: string }>('POST', '/v2/sessions/links');
      const page = await fixture.visit();
      await page.goto(body.url);
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      assert.doesNotMatch(page.url(), /token/);
      const second = await fixture.visit();
      await second.goto(body.url);
      await second.getByText('this link was used already').waitFor();
      await page.context().close();
      await second.context().close();
    });

    test('a session ends with its key, keeps what was typed, and goes on after signing in again', async () => {
      const ann = await fixture.createAccount('ann');
      const made = await ann.call<{ id: string; key: string }>('POST', '/v2/account/api-keys', {
        name: 'short',
        access: 'ALL',
      });
      const page = await fixture.signIn(made.body.key);
      await page.goto('/serverless/new');
      await page.getByLabel('Name', { exact: true }).fill('half typed');
      assert.equal((await ann.call('DELETE', `/v2/account/api-keys/${made.body.id}`)).status, 204);
      await page.getByRole('button', { name: 'Create the endpoint' }).click();
      const dialog = page.getByRole('dialog', { name: 'Your session has ended' });
      await dialog.getByLabel('API key').fill(ann.key);
      await dialog.getByRole('button', { name: 'Sign in' }).click();
      await dialog.waitFor({ state: 'detached' });
      assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'half typed');
      await page.getByRole('button', { name: 'Create the endpoint' }).click();
      await page.getByRole('heading', { name: 'half typed' }).waitFor();
      const { body } = await ann.call<{ sessions: { id: string; current: boolean }[] }>(
        'GET',
        '/v2/sessions',
      );
      assert.equal(body.sessions.length, 1, 'the session of the revoked key is gone');
      assert.equal((await ann.call('DELETE', `/v2/sessions/${body.sessions[0]?.id}`)).status, 204);
      await page.goto('/serverless');
      assert.equal(new URL(page.url()).pathname, '/login', 'a session that was ended opens nothing');
      await page.context().close();
    });

    test('a read-only key sees no button that it may not press', async () => {
      const ann = await fixture.createAccount('reader');
      const made = await ann.call<{ key: string }>('POST', '/v2/account/api-keys', {
        name: 'looks',
        access: 'READ_ONLY',
      });
      const endpoint = await ann.call<{ id: string }>('POST', '/v2/serverless', {
        name: 'seen',
        type: 'QUEUE',
        image: 'local/echo',
        cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
        workers: { min: 0, max: 1 },
        scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
      });
      const page = await fixture.signIn(made.body.key);
      await page.goto('/serverless');
      await page.getByRole('link', { name: 'seen' }).waitFor();
      assert.equal(await page.getByRole('link', { name: 'New endpoint' }).count(), 0);
      await page.goto(`/serverless/${endpoint.body.id}/settings`);
      await page.getByRole('heading', { name: 'Settings' }).waitFor();
      for (const name of ['Save', 'Delete …'])
        assert.equal(await page.getByRole('button', { name }).count(), 0);
      assert.equal(await page.getByRole('link', { name: 'Playground' }).count(), 0);
      await page.context().close();
    });

    test('the browser asks for what the first page shows together with its scripts, and once', async () => {
      const page = await fixture.signIn();
      const asked: string[] = [];
      page.on('request', (request) => asked.push(new URL(request.url()).pathname));
      await page.goto('/');
      await page.getByRole('heading', { name: 'Run your first job' }).waitFor();
      // The page before may still have asked for something.
      const loaded = asked.slice(asked.indexOf('/'));
      for (const path of ['/v2/session', '/v2/account/overview'])
        assert.equal(loaded.filter((each) => each === path).length, 1, `${path} in ${loaded.join(' ')}`);
      assert.equal(loaded[1], '/v2/session', 'before the scripts');
      await page.context().close();
    });

    test('signing out ends the session', async () => {
      const page = await fixture.signIn();
      const [cookie] = await page.context().cookies();
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByRole('heading', { name: 'Sign in to Berth' }).waitFor();
      const answer = await fetch(`${fixture.server.url}/v2/session`, {
        headers: { cookie: `${cookie?.name}=${cookie?.value}` },
      });
      assert.equal(answer.status, 401);
      await page.context().close();
    });
  });
