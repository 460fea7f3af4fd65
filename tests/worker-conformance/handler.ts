// The handlers of the conformance suite for the TypeScript SDK; handler.py has the same for Python.
// CONFORMANCE holds the kind of handler and the options of the worker.
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { serve } from '../../packages/worker/src/worker.ts';
import type { Context, Job } from '../../packages/worker/src/handler.ts';
import type { ConformanceInput, WorkerSettings } from './conformance-input.ts';

const settings = JSON.parse(process.env['CONFORMANCE'] ?? '') as WorkerSettings;
const MEGABYTE = 'x'.repeat(2 ** 20);
const UNSENDABLE = { big: 1n };

async function plain({ id, input }: Job<ConformanceInput>, { signal, progress }: Context): Promise<unknown> {
  if (input.runs !== undefined) appendFileSync(input.runs, `${id}\n`);
  switch (input.do) {
    case 'echo':
      return input.value;
    case 'nothing':
      return undefined;
    case 'raise':
      throw new Error('broken on purpose');
    case 'error':
      return { error: 'no good', extra: 1 };
    case 'unsendable':
      return UNSENDABLE;
    case 'circle': {
      const value: unknown[] = [];
      value.push(value);
      return value;
    }
    case 'print':
      for (let count = 0; count < (input.megabytes ?? 0); count += 1) process.stdout.write(`${MEGABYTE}\n`);
      return 'printed';
    case 'progress':
      progress({ at: 1 });
      await fileExists(input.until);
      return 'done';
    case 'wait':
      process.stdout.write(`${input.says ?? 'running'}\n`);
      await fileExists(input.until);
      return input.value;
    case 'block':
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, (input.seconds ?? 0) * 1000);
      return 'unblocked';
    case 'cancel':
      process.stdout.write('running\n');
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      process.stdout.write('saw the cancellation\n');
      return 'too late';
    case 'refresh':
      return { a: 1, refresh_worker: true };
    case 'exit':
      process.exit(3);
    case 'die':
      if (existsSync(input.until ?? '')) return 'survived';
      writeFileSync(input.until ?? '', '');
      process.kill(process.pid, 'SIGKILL');
      return new Promise(() => undefined);
    default:
      throw new Error(`the suite has no ${input.do}`);
  }
}

async function* stream({ id, input }: Job<ConformanceInput>): AsyncGenerator {
  if (input.runs !== undefined) appendFileSync(input.runs, `${id}\n`);
  try {
    for (let number = 0; number < (input.count ?? 0); number += 1) {
      if (number === input.raiseAt) throw new Error('stream broken');
      if (number === input.errorAt) yield { error: 'no more' };
      if (number === input.unsendableAt) yield UNSENDABLE;
      yield number;
      if (number === 0 && input.says !== undefined) process.stdout.write(`${input.says}\n`);
      if (input.pauseMs !== undefined) await pause(input.pauseMs);
    }
  } finally {
    if (input.closed !== undefined) process.stdout.write(`${input.closed}\n`);
    if (input.stubborn === true) yield 'after the end';
  }
}

async function fileExists(path = ''): Promise<void> {
  while (!existsSync(path)) await pause(10);
}

serve(settings.handler === 'stream' ? stream : plain, {
  channel: settings.channel,
  ...(settings.aggregate === true && { aggregate: true }),
});
process.stdin.on('end', () => process.exit()).resume();
