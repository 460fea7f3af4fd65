import { dirname } from 'node:path';
import { connect } from '../client.ts';
import type { Client } from '../client.ts';
import { command } from '../command.ts';
import { Failure } from '../failure.ts';
import { serverOptions } from '../local-server.ts';
import { visible } from '../output.ts';
import type { Output } from '../output.ts';
import { deployImage } from '../serverless/deployment.ts';
import type { EndpointView } from '../serverless/endpoints.ts';
import { folderName, isFolder } from '../serverless/folder.ts';
import { orderOptions, readCount, readOrder } from '../serverless/order.ts';
import { sayOn, takeSnapshot, uploadFolder } from '../serverless/upload.ts';
import { listWorkers, waitForWorker } from '../serverless/workers.ts';
import type { Writable } from '../surroundings.ts';

const DEFAULT_TIMEOUT_S = 120;
/** No image begins like this. */
const IS_PATH = /^(?:\.{1,2}$|\.{0,2}\/|~)/;
/** With neither a registry nor a tag, and not of this server. */
const COULD_BE_FOLDER = /^(?!local\/)[^.:@/]+(?:\/[^:@]*)?$/;

export const deploy = command({
  name: 'deploy',
  summary: 'Run a folder or an image as a serverless endpoint.',
  details:
    'A folder is uploaded as it is now, without .git and without what .berthignore names (or .gitignore, where there is no .berthignore). It runs the command in its berth.json, or else handler.ts, handler.js, handler.mjs or handler.py. ' +
    'Where an endpoint of this name exists, it gets the new image as a new release, and what the options say besides; all else stays as it is.',
  words: {
    'FOLDER|IMAGE':
      'A folder of this machine, or the name of an image such as local/shell or ghcr.io/me/worker:1.',
  },
  options: {
    name: {
      kind: 'text',
      value: 'NAME',
      description: 'What the endpoint is called. Default: as the folder or the image.',
    },
    ...orderOptions,
    wait: {
      kind: 'switch',
      description: 'Wait until a worker of this release is ready, where --min keeps one.',
    },
    timeout: {
      kind: 'text',
      value: 'SECONDS',
      description: `How long to wait. Default: ${DEFAULT_TIMEOUT_S}.`,
    },
    ...serverOptions,
  },
  async run(call) {
    const { words, options, output, stderr } = call;
    const source = words['FOLDER|IMAGE'];
    const order = readOrder(options);
    const timeout = readCount('timeout', options.timeout, 1) ?? DEFAULT_TIMEOUT_S;
    const say = sayOn(stderr, output.forPeople);
    const fromFolder = await isFolder(source);
    if (!fromFolder) {
      if (IS_PATH.test(source)) throw new Failure(`there is no folder ${source}`);
      if (await isBesideFolders(source))
        throw new Failure(`there is no folder ${source}; an image of that name is ${source}:latest`);
      if (COULD_BE_FOLDER.test(source))
        stderr.write(`berth: there is no folder ${source}, so it is taken for an image\n`);
    }
    const name = options.name ?? (fromFolder ? folderName(source) : nameOfImage(source));
    // Read first: a mistake in the folder is told without asking the server.
    const folder = fromFolder ? await takeSnapshot(source, stderr) : undefined;
    const client = await connect(call);
    const image = folder === undefined ? source : (await uploadFolder(client, name, folder, say)).image;
    const { endpoint, created } = await deployImage(client, name, image, order, say);
    if (!fromFolder) await warnOfImage(client, endpoint, stderr);
    if (options.wait && endpoint.workers.min > 0) say('waiting for a worker');
    const state = options.wait ? await waitForWorker(client, endpoint, timeout * 1000) : {};
    show(output, endpoint, { created, ...state });
  },
});

function show(
  output: Output,
  { id, name, type, image, workers, requestUrls }: EndpointView,
  rest: { created: boolean; ready?: boolean; reason?: string },
): void {
  if (!output.forPeople) return output.record({ id, name, type, image, ...rest, requestUrls });
  const next =
    type === 'QUEUE'
      ? `Try it: berth run ${quoted(name)} '{"input": {}}' --sync`
      : `Try it: curl -H "Authorization: Bearer $BERTH_API_KEY" ${requestUrls['base']}/`;
  output.record(
    { id, name, image, workers: `${workers.min} to ${workers.max}`, ...requestUrls },
    ...(rest.reason === undefined ? [] : [rest.reason]),
    next,
  );
}

/** A name whose first part is a folder here is a slip, unless a tag says otherwise. */
async function isBesideFolders(source: string): Promise<boolean> {
  return source.includes('/') && !/[:@]/.test(source) && (await isFolder(dirname(source)));
}

/** Where the server knows by now that nothing connected can run the image, nobody shall learn it from the first job. */
async function warnOfImage(client: Client, endpoint: EndpointView, stderr: Writable): Promise<void> {
  const { reason } = await listWorkers(client, endpoint);
  if (reason?.startsWith('no worker can be placed') === true) stderr.write(`berth: ${visible(reason)}\n`);
}

/** `ghcr.io/me/worker:1` is called worker. */
function nameOfImage(image: string): string {
  return (image.split('/').at(-1) ?? image).replace(/[:@].*$/, '') || image;
}

/** A name as a shell takes it. */
function quoted(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", `'\\''`)}'`;
}
