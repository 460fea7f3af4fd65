import assert from 'node:assert/strict';
import { dirname } from 'node:path';
import { describe, test } from 'node:test';
import { runBerth } from '../../../packages/testing/src/berth-command.ts';
import { clientFixture } from '../../../packages/testing/src/client-fixture.ts';
import { launchChromium } from '../../../packages/testing/src/chromium.ts';
import { withoutBrowser } from '../../../packages/testing/src/console-browser.ts';
import { createRunningPod } from '../../../packages/testing/src/pod-client.ts';
import { waitFor, waitUntilPasses } from '../../../packages/testing/src/wait-for.ts';
import { installedPython } from '../python-programs.ts';

const LIMIT_MS = 280_000;
/** On a busy machine, JupyterLab takes long to appear, and so does its kernel. */
const PAGE_MS = 120_000;

/** As images do it: on all addresses, with the password that Berth gives. */
const START = `export HOME=$PWD JUPYTER_CONFIG_DIR=$PWD/.jupyter PATH=${dirname(installedPython('jupyter').path)}:$PATH
exec jupyter lab --allow-root --no-browser --ip 0.0.0.0 --port "$PORT" --IdentityProvider.token="$JUPYTER_PASSWORD"`;

const PROGRAM = 'import os; print(6 * 7, os.environ["RUNPOD_POD_ID"])';

interface Kernel {
  execution_state: string;
  /** Pages that are connected to it. */
  connections: number;
}

async function isKernelIdle(url: string, password: string): Promise<boolean> {
  const answer = await fetch(`${url}api/kernels`, { headers: { authorization: `token ${password}` } });
  // A kernel that is just being made has no model yet, and the list of all fails with it.
  if (!answer.ok) return false;
  const [kernel] = (await answer.json()) as Kernel[];
  return kernel?.execution_state === 'idle' && kernel.connections > 0;
}

describe('JupyterLab in a pod, through the proxy', { skip: withoutBrowser() }, () => {
  const fixture = clientFixture();

  test('a cell runs in a browser', { timeout: LIMIT_MS }, async () => {
    const { id } = await createRunningPod(fixture.client, {
      startJupyter: true,
      ports: ['8888/http'],
      cmd: ['bash', '-c', START],
    });
    const env = { BERTH_URL: fixture.server.url, BERTH_API_KEY: fixture.server.key };
    const password = (await runBerth(['exec', id, 'printenv', 'JUPYTER_PASSWORD'], env)).stdout.trim();
    const { url } = (await runBerth<{ url: string }>(['pod', 'open', id, '--json'], env)).json;
    await waitFor(
      'JupyterLab answers',
      async () => (await fetch(`${url}api`).catch(() => undefined))?.status === 200,
      PAGE_MS,
    );
    const browser = await launchChromium();
    try {
      const page = await browser.newPage();
      page.setDefaultTimeout(PAGE_MS);
      await page.goto(`${url}lab?token=${password}`);
      // The proxy has sent the browser to a host name of the pod's own.
      assert.equal(new URL(page.url()).hostname, `${id}-8888.localhost`);
      await page.locator('.jp-LauncherCard[data-category="Notebook"]').first().click();
      // A cell that is run before the page has its kernel is not run at all, and the page calls no kernel
      // idle too.
      await waitFor('the kernel is idle', () => isKernelIdle(url, password), PAGE_MS);
      const cell = page.locator('.jp-Notebook .jp-CodeCell .cm-content').first();
      await cell.click();
      await page.keyboard.type(PROGRAM);
      await waitUntilPasses(async () => assert.equal(await cell.innerText(), PROGRAM));
      await page.keyboard.press('Shift+Enter');
      const output = page.locator('.jp-OutputArea-output').first();
      await output.waitFor();
      assert.equal((await output.innerText()).trim(), `42 ${id}`);
    } finally {
      await browser.close();
    }
  });
});
