import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

/**
 * Runs a handler file: `run-handler.ts <module that exports serve> <handler file>`. A function that is the
 * file's default export is served; a file that calls `serve` itself just runs. The worker SDK is found by its
 * name wherever the file is. `@berth/worker` was its name up to 0.1: handlers deployed then still run.
 */
const WORKER_SDK = ['berth-worker', '@berth/worker'];

const [, , workerModule, handlerFile] = process.argv;
if (workerModule === undefined || handlerFile === undefined)
  throw new Error('usage: run-handler.ts WORKER_MODULE HANDLER_FILE');
const worker = pathToFileURL(workerModule).href;

registerHooks({
  resolve: (specifier, context, nextResolve) =>
    WORKER_SDK.includes(specifier) ? { url: worker, shortCircuit: true } : nextResolve(specifier, context),
});

const handler = (await import(pathToFileURL(handlerFile).href)) as { default?: unknown };
if (typeof handler.default === 'function') {
  const { serve } = (await import(worker)) as { serve: (handler: unknown) => unknown };
  serve(handler.default);
}
