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
import { waitFor } from '../../packages/testing/src/wait-for.ts';

const MAX_TABS = 60;

describe('console: themes, the keyboard and small screens', { skip: withoutBrowser() }, () => {
  const fixture = consoleFixture('sqlite', { BERTH_RATE_LIMITS: 'off' });
  let page: Page;
  before(async () => {
    page = await fixture.signIn();
  });

  const background = (): Promise<string> => page.evaluate('getComputedStyle(document.body).backgroundColor');
  const theme = (name: string) => page.getByRole('button', { name: `Theme: ${name}. Change it` });

  test('the theme follows the system until one is chosen; the choice is kept, also by other pages and tabs', async () => {
    await page.emulateMedia({ colorScheme: 'light' });
    await page.goto('/');
    await theme('system').waitFor();
    const light = await background();
    await page.emulateMedia({ colorScheme: 'dark' });
    const dark = await background();
    assert.notEqual(dark, light);
    await theme('system').click();
    await theme('light').waitFor();
    assert.equal(await background(), light, 'a light page on a dark system');
    await page.emulateMedia({ colorScheme: 'light' });
    await theme('light').click();
    await theme('dark').waitFor();
    assert.equal(await background(), dark, 'a dark page on a light system');
    await page.reload();
    await theme('dark').waitFor();
    assert.equal(await background(), dark);
    await page.goto('/secrets');
    await theme('dark').waitFor();
    const other = await page.context().newPage();
    await other.goto('/pods');
    await other.getByRole('button', { name: 'Theme: dark. Change it' }).waitFor();
    await other.close();
    await assertAccessible(page);
    await theme('dark').click();
    await theme('system').waitFor();
    await page.emulateMedia({ colorScheme: 'light' });
    assert.equal(await background(), light);
    await page.emulateMedia({ colorScheme: null });
  });

  /** Presses Tab until the control of this name has the focus, as someone without a mouse does. */
  async function tabTo(name: string): Promise<void> {
    const named = (): Promise<boolean> =>
      page.evaluate(`(() => {
        const element = document.activeElement;
        const label = element.labels?.[0]?.textContent ?? element.getAttribute('aria-label') ?? element.textContent;
        return label.trim() === ${JSON.stringify(name)};
      })()`);
    for (let pressed = 0; !(await named()); pressed += 1) {
      assert.ok(pressed < MAX_TABS, `${name} is not reached with Tab`);
      await page.keyboard.press('Tab');
    }
  }

  test('with the keyboard alone: from signing in to a first result, and the deletion of what was made', async () => {
    await page.context().close();
    page = await fixture.visit();
    await page.goto('/serverless/new');
    await page.getByRole('heading', { name: 'Sign in to Berth' }).waitFor();
    await tabTo('API key');
    await page.keyboard.type(fixture.server.key);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'New endpoint' }).waitFor();
    await waitUntilLoaded(page);
    await tabTo('Create the endpoint');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Run', exact: true }).waitFor();
    await tabTo('Run');
    await page.keyboard.press('Enter');
    await page.getByText('completed', { exact: true }).waitFor();
    // A dialog takes the focus, keeps it, and gives it back when it is closed.
    await page.goto('/secrets');
    await page.getByRole('heading', { name: 'No secrets yet' }).waitFor();
    await tabTo('New secret');
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'New secret' });
    await dialog.waitFor();
    for (let pressed = 0; pressed < 12; pressed += 1) {
      await page.keyboard.press('Tab');
      const inside = await dialog.evaluate((element) => element.matches(':focus-within'));
      assert.ok(inside, 'the focus stays in the dialog');
    }
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await waitFor('the focus is back', () =>
      page.getByRole('button', { name: 'New secret' }).evaluate((element) => element.matches(':focus')),
    );
    await page.keyboard.press('Enter');
    await tabTo('Name');
    await page.keyboard.type('HF_TOKEN');
    await tabTo('Value');
    await page.keyboard.type('s3cret');
    // In this field, Enter begins a line.
    await tabTo('Create');
    await page.keyboard.press('Enter');
    await page.getByRole('cell', { name: 'HF_TOKEN', exact: true }).waitFor();
    // Menus open and are chosen from with the arrows.
    await tabTo('Actions of HF_TOKEN');
    await page.keyboard.press('Enter');
    await page.getByRole('menuitem', { name: 'Delete' }).waitFor();
    await waitFor('Delete has the focus', async () => {
      await page.keyboard.press('ArrowDown');
      return page.getByRole('menuitem', { name: 'Delete' }).evaluate((element) => element.matches(':focus'));
    });
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await waitFor('the focus is back at the menu', () =>
      page
        .getByRole('button', { name: 'Actions of HF_TOKEN' })
        .evaluate((element) => element.matches(':focus')),
    );
    await page.keyboard.press('Enter');
    await page.getByRole('menuitem', { name: 'Delete' }).waitFor();
    await waitFor('Delete has the focus again', async () => {
      await page.keyboard.press('ArrowDown');
      return page.getByRole('menuitem', { name: 'Delete' }).evaluate((element) => element.matches(':focus'));
    });
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await tabTo('Delete the secret');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'No secrets yet' }).waitFor();
    await waitFor('the focus is at the page', () =>
      page.locator('#main').evaluate((element) => element.matches(':focus')),
    );
  });

  test('on a phone the menu opens, leads to every page and closes', async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    await page.goto('/');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const link = page.getByRole('complementary', { name: 'Berth' }).getByRole('link', { name: 'Templates' });
    assert.equal(await link.isVisible(), false);
    await page.getByRole('button', { name: 'Menu' }).click();
    await link.waitFor();
    await assertAccessible(page);
    await link.click();
    await page.getByRole('heading', { name: 'Templates', level: 1 }).waitFor();
    await link.waitFor({ state: 'hidden' });
  });

  test('going back and forward keeps the page, its search and what is open', async () => {
    await page.setViewportSize({ width: 1280, height: 850 });
    for (const name of ['first', 'second', 'third', 'fourth', 'fifth', 'sixth'])
      await createResource(
        fixture.operator,
        '/v2/serverless',
        queueEndpoint(name, 'local/echo', { min: 0, max: 0 }),
      );
    await page.goto('/serverless');
    await page.getByRole('link', { name: 'second', exact: true }).waitFor();
    await page.getByLabel('Search the endpoints').fill('first');
    await page.waitForURL(/q=first/);
    await page.getByRole('link', { name: 'first', exact: true }).click();
    await page.getByRole('heading', { name: 'first', level: 1 }).waitFor();
    await page.getByRole('link', { name: 'Settings' }).click();
    await page.waitForURL(/settings$/);
    await page.goBack();
    await page.waitForURL(/serverless\/\w+$/);
    await page.goBack();
    await page.waitForURL(/q=first/);
    assert.equal(await page.getByLabel('Search the endpoints').inputValue(), 'first');
    await page.getByRole('link', { name: 'first', exact: true }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'second', exact: true }).count(), 0);
    await page.goForward();
    await page.goForward();
    await page.waitForURL(/settings$/);
    await page.getByLabel('Workers at most').waitFor();
  });
});
