import type { Browser, BrowserContext, CDPSession } from 'playwright-core';

type Cookies = Awaited<ReturnType<BrowserContext['cookies']>>;

export interface BarePage {
  /** A command of the DevTools protocol, to the page. */
  send<T = unknown>(method: string, params?: object): Promise<T>;
  title(): Promise<string>;
}

/**
 * A page as a reader has it, in a context of its own with an empty cache. Pages of Playwright have the inspector
 * of requests and scripts on: for each request that a script makes it looks up the script's position, which
 * takes 200 ms of a load on a processor that is four times slower.
 */
export async function withBarePage<T>(
  browser: Browser,
  { cookies, width, height }: { cookies: Cookies; width: number; height: number },
  use: (page: BarePage) => Promise<T>,
): Promise<T> {
  const devtools = await browser.newBrowserCDPSession();
  const { browserContextId } = await devtools.send('Target.createBrowserContext');
  try {
    await devtools.send('Storage.setCookies', {
      browserContextId,
      cookies: cookies.map(({ name, value, domain, path }) => ({ name, value, domain, path })),
    });
    const { targetId } = await devtools.send('Target.createTarget', {
      url: 'about:blank',
      browserContextId,
      width,
      height,
    });
    const { sessionId } = await devtools.send('Target.attachToTarget', { targetId });
    return await use({
      send: commandsTo(devtools, sessionId),
      title: async () => (await devtools.send('Target.getTargetInfo', { targetId })).targetInfo.title,
    });
  } finally {
    await devtools.send('Target.disposeBrowserContext', { browserContextId });
    await devtools.detach();
  }
}

function commandsTo(devtools: CDPSession, sessionId: string): BarePage['send'] {
  const waiting = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>();
  devtools.on('Target.receivedMessageFromTarget', ({ message }) => {
    const { id, result, error } = JSON.parse(message) as {
      id?: number;
      result?: unknown;
      error?: { message: string };
    };
    if (id === undefined) return;
    if (error === undefined) waiting.get(id)?.resolve(result);
    else waiting.get(id)?.reject(new Error(error.message));
    waiting.delete(id);
  });
  let lastId = 0;
  return <T>(method: string, params = {}) =>
    new Promise<T>((resolve, reject) => {
      lastId += 1;
      waiting.set(lastId, { resolve: (result) => resolve(result as T), reject });
      const message = JSON.stringify({ id: lastId, method, params });
      devtools.send('Target.sendMessageToTarget', { sessionId, message }).catch(reject);
    });
}
