import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import type { Handler } from '../../../../worker/src/worker.ts';

/**
 * Runs a handler file: `run-handler.ts <module that has serve> <handler file>`. A file that
 * exports a function by default is served; one that calls `serve` itself just runs. Wherever the
 * file lies, it finds the worker library under its name.
 */
const WORKER_LIBRARY = '@berth/worker';

const [, , workerModule, handlerFile] = process.argv;
if (workerModule === undefined || handlerFile === undefined)
  throw new Error('usage: run-handler.ts WORKER_MODULE HANDLER_FILE');
const worker = pathToFileURL(workerModule).href;

registerHooks({
  resolve: (specifier, context, nextResolve) =>
    specifier === WORKER_LIBRARY ? { url: worker, shortCircuit: true } : nextResolve(specifier, context),
});

const handler = (await import(pathToFileURL(handlerFile).href)) as { default?: unknown };
if (typeof handler.default === 'function') {
  const { serve } = (await import(worker)) as { serve: (handler: Handler) => unknown };
  serve(handler.default as Handler);
}
