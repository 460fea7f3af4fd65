import type { TestContext } from 'node:test';

/** What a test opened is closed when it ends, however it ends: the last first. */
export function closeAfterTest(context: TestContext): (close: () => Promise<unknown>) => void {
  const open: (() => Promise<unknown>)[] = [];
  context.after(async () => {
    for (const close of open.reverse()) await close();
  });
  return (close) => void open.push(close);
}
