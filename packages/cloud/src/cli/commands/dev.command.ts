import { setTimeout as pause } from 'node:timers/promises';
import type { ApiClient } from '../api-client.ts';
import { command } from '../command-definition.ts';
import { CliError } from '../cli.errors.ts';
import { DevSession } from '../serverless/dev-session.ts';
import type { EndpointView } from '../serverless/endpoint-client.ts';
import { endpointPath } from '../serverless/endpoint-client.ts';
import { isFolder, readSourceFolder } from '../serverless/source-folder.ts';
import { readJobInput } from '../serverless/job-input.ts';
import { noSuchFolder } from '../serverless/no-such-folder.ts';
import { deployOptions, parseCount, parseDeploySettings } from '../serverless/deploy-options.ts';
import { startPrivateServer } from '../serverless/private-server.ts';
import { watchSourceFolder } from '../serverless/watch-source.ts';
import { listWorkers } from '../serverless/worker-client.ts';

const { type, env } = deployOptions;
/** How long to wait for the worker to end. */
const SHUTDOWN_TIMEOUT_MS = 15_000;

export const dev = command({
  name: 'dev',
  summary: 'Run a folder during development: show its log, and restart it at every change.',
  details:
    'It runs on a temporary Berth server with one worker, which is removed when the command ends. ' +
    'Stop it with Ctrl-C.',
  words: { FOLDER: 'A folder as for "berth deploy".' },
  options: {
    port: { kind: 'text', value: 'N', description: 'Where the private Berth listens. Default: a free port.' },
    input: {
      kind: 'text',
      value: 'JSON',
      description: 'A job to run after every change, as "berth run" takes it.',
    },
    type,
    env,
  },
  async run(call) {
    const { words, options, output, stderr } = call;
    const folder = words.FOLDER;
    if (!(await isFolder(folder))) throw await noSuchFolder(folder);
    const port = parseCount('port', options.port, 0) ?? 0;
    const job = options.input === undefined ? undefined : await readJobInput(options.input, call.stdin);
    const settings = parseDeploySettings({
      type: options.type,
      env: options.env,
      gpu: undefined,
      'gpu-count': undefined,
      cpu: undefined,
      min: '1',
      max: '1',
      idle: undefined,
      port: undefined,
      registry: undefined,
      'data-center': [],
      accelerate: false,
    });
    // Read first, so that a mistake in the folder is reported before anything starts.
    await readSourceFolder(folder);
    const stopped = stopSignal();
    const server = await startPrivateServer(call.env, port);
    try {
      const session = new DevSession({ client: server.client, folder, settings, job, output, stderr });
      const died = server.ended.then((said) =>
        Promise.reject(new CliError(`the private Berth ended: ${said}`)),
      );
      died.catch(() => undefined);
      await Promise.race([died, session.deploy()]);
      await Promise.race([
        died,
        watchSourceFolder(folder, () => session.deploy(), stopped),
        session.follow(stopped),
      ]);
      if (session.endpoint !== undefined) await deleteEndpointAndWait(server.client, session.endpoint);
    } finally {
      await server.stop();
    }
  },
});

function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop.abort());
  return stop.signal;
}

/** Workers keep running when Berth stops, so they are stopped first. */
async function deleteEndpointAndWait(client: ApiClient, endpoint: EndpointView): Promise<void> {
  await client.patch(endpointPath(endpoint), { workers: { min: 0, max: 0 } });
  const until = performance.now() + SHUTDOWN_TIMEOUT_MS;
  while ((await listWorkers(client, endpoint)).summary.total > 0 && performance.now() < until)
    await pause(100);
  await client.delete(endpointPath(endpoint));
}
