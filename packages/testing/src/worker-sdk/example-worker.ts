// A program as users write it, for tests that need a process: what it does is chosen by its environment.
import { existsSync } from 'node:fs';
import type { Handler, Options } from '../../../worker/src/worker.ts';
import { serve } from '../../../worker/src/worker.ts';

const handlers: Record<string, Handler> = {
  echo: (job) => job.input,
  fails: () => {
    throw new Error('as it should');
  },
  counts: function* () {
    yield 1;
    yield 2;
  },
  refreshes: () => ({ refreshWorker: true, done: 1 }),
  // Ends when the parent process asks for it.
  waits: () => new Promise((resolve) => process.stdin.once('data', () => resolve('drained'))),
  // Keeps the whole process busy until the file is there.
  blocks: (job) => {
    blockUntil(job.input as string);
    return 'unblocked';
  },
  'gives up': (_job, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', reject)),
  listens: async (_job, { signal, progress }) => {
    progress('begun');
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    process.stdout.write('aborted\n');
    await new Promise(() => undefined);
  },
};

function blockUntil(file: string): void {
  while (!existsSync(file)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
}

const { TEST_UNFIT, TEST_CONCURRENCY, TEST_BUSY_UNTIL, TEST_SECOND } = process.env;
const options: Options = {
  concurrency: Number(TEST_CONCURRENCY ?? 1),
  ...(TEST_UNFIT === undefined
    ? {}
    : {
        fitness: [
          function isFit() {
            throw new Error('unfit');
          },
        ],
      }),
};
const handler = handlers[process.env['TEST_HANDLER'] ?? 'echo'] as Handler;
serve(handler, options);
if (TEST_SECOND !== undefined)
  serve(handler, { ...options, env: { ...process.env, RUNPOD_POD_ID: TEST_SECOND } });
// A program may do more than serve,
if (TEST_BUSY_UNTIL !== undefined) setTimeout(blockUntil, 500, TEST_BUSY_UNTIL);
// and have more open than its worker; it ends all the same.
setInterval(() => undefined, 1_000);
