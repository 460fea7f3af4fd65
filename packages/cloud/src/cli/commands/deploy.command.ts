import { dirname } from 'node:path';
import { referencedSecrets } from '../../domain/secrets/secret-references.ts';
import type { ImageFile } from '../../domain/images/image-files.ts';
import { connect } from '../connect.ts';
import type { ApiClient } from '../api-client.ts';
import { programName } from '../cli-context.ts';
import { command } from '../command-definition.ts';
import { CliError } from '../cli.errors.ts';
import { interruptiblePause } from '../interruptible-pause.ts';
import { serverOptions } from '../local-server.ts';
import { escapeControlCharacters } from '../output.ts';
import type { Output } from '../output.ts';
import { writeLine } from '../terminal-text.ts';
import { deployImage } from '../serverless/deploy-image.ts';
import { findEndpointIn, listEndpoints, type EndpointView } from '../serverless/endpoint-client.ts';
import { folderName, isFolder } from '../serverless/source-folder.ts';
import { noSuchFolder } from '../serverless/no-such-folder.ts';
import { deployOptions, parseCount, parseDeploySettings } from '../serverless/deploy-options.ts';
import { CopyProgress } from '../copy-progress.ts';
import { progressReporter, quietOption, snapshotFolder, uploadFolder } from '../serverless/image-upload.ts';
import { gpuShortage } from '../serverless/gpu-choice.ts';
import { listWorkers, waitForWorker } from '../serverless/worker-client.ts';
import type { OutputStream } from '../cli-context.ts';

const DEFAULT_TIMEOUT_S = 120;
/** A path: no image name starts like this. */
const IS_PATH = /^(?:\.{1,2}$|\.{0,2}\/|~)/;
/** A name without registry and tag that is not an image of this server. */
const COULD_BE_FOLDER = /^(?!local\/)[^.:@/]+(?:\/[^:@]*)?$/;

/** Python packages of a folder, in the order in which Berth looks for them. */
const PACKAGE_LISTS = ['requirements.txt', 'pyproject.toml'];

export const deploy = command({
  name: 'deploy',
  summary: 'Run a folder or an image as a serverless endpoint.',
  details:
    'A folder is uploaded as it is now, without .git and without what .berthignore names (or ' +
    '.gitignore, where there is no .berthignore). It runs the command in its berth.json, or else ' +
    'handler.ts, handler.js, handler.mjs or handler.py. ' +
    'Where an endpoint of this name exists, it gets the new image as a new release, and what the ' +
    'options say besides; all else stays as it is.',
  words: {
    'FOLDER|IMAGE':
      'A folder of this machine, or the name of an image such as local/shell or ghcr.io/me/worker:1.',
  },
  options: {
    name: {
      kind: 'text',
      value: 'NAME',
      description: 'The name of the endpoint. Default: the name of the folder or the image.',
    },
    ...deployOptions,
    wait: {
      kind: 'switch',
      description: 'Wait until a worker of this release is ready, where --min keeps one.',
    },
    force: {
      kind: 'switch',
      description:
        'Deploy also what looks like a mistake: a name that is neither a folder nor clearly an image, ' +
        'an image that cannot be found, or secrets that do not exist.',
    },
    timeout: {
      kind: 'text',
      value: 'SECONDS',
      description: `How long to wait. Default: ${DEFAULT_TIMEOUT_S}.`,
    },
    ...quietOption,
    ...serverOptions,
  },
  async run(call) {
    const { words, options, output, stderr } = call;
    const program = programName(call.env);
    const source = words['FOLDER|IMAGE'];
    const given = parseDeploySettings(options);
    const timeout = parseCount('timeout', options.timeout, 1) ?? DEFAULT_TIMEOUT_S;
    const say = progressReporter(stderr, options);
    const fromFolder = await isFolder(source);
    if (!fromFolder) {
      if (IS_PATH.test(source)) throw await noSuchFolder(source);
      if (await isBesideFolders(source))
        throw await noSuchFolder(source, `; an image of that name is ${source}:latest`);
      if (COULD_BE_FOLDER.test(source) && !options.force)
        throw await noSuchFolder(
          source,
          `, and an image has a registry or a tag: write ${source}:latest, or --force to take it for an image`,
        );
    }
    const name = options.name ?? (fromFolder ? folderName(source) : imageBaseName(source));
    // Read first, so that a mistake in the folder is reported before any request.
    const folder = fromFolder ? await snapshotFolder(source, stderr) : undefined;
    if (folder !== undefined && !options.quiet && lacksSdk(folder.files))
      writeLine(
        stderr,
        'berth: handler.py imports runpod, and neither requirements.txt nor pyproject.toml names it: it runs ' +
          'only where Python has it already',
      );
    const client = await connect(call);
    const registry = given.registry === undefined ? undefined : await findRegistry(client, given.registry);
    const settings = { ...given, registry };
    if (!options.force) {
      await checkSecretsExist(client, settings.env);
      if (!fromFolder) await checkImageExists(client, source, name, registry);
    }
    const progress = stderr.isTTY === true && !options.quiet ? new CopyProgress(stderr) : undefined;
    const image =
      folder === undefined ? source : (await uploadFolder(client, name, folder, say, progress)).image;
    const { endpoint, created } = await deployImage(client, name, image, settings, say);
    if (!fromFolder) await warnIfNotRunnable(client, endpoint, stderr);
    if (settings.gpu !== undefined && endpoint.gpu) {
      const shortage = await gpuShortage(client, endpoint.gpu);
      if (shortage !== undefined) writeLine(stderr, `berth: ${shortage}`);
    }
    if (options.wait && endpoint.workers.min > 0) say('waiting for a worker');
    const reportStart = (state: string): void => say(`  ${escapeControlCharacters(state)}`);
    const pause = interruptiblePause(
      call,
      `${shellQuote(name)} is deployed, and its worker goes on starting; ${program} ps ${shellQuote(name)} shows how far it is`,
    );
    const state = options.wait
      ? await waitForWorker(client, endpoint, timeout * 1000, pause, reportStart)
      : {};
    const packages = folder?.files.find(({ path }) => PACKAGE_LISTS.includes(path))?.path;
    show(output, endpoint, { created, ...state }, { program, packages });
  },
});

function show(
  output: Output,
  { id, name, type, image, workers, requestUrls }: EndpointView,
  rest: { created: boolean; ready?: boolean; reason?: string },
  { program, packages }: { program: string; packages: string | undefined },
): void {
  if (!output.isText) return output.printRecord({ id, name, type, image, ...rest, requestUrls });
  const next =
    type === 'QUEUE'
      ? `Try it: ${program} run ${shellQuote(name)} '{"input": {}}' --sync`
      : `Try it: curl -H "Authorization: Bearer $BERTH_API_KEY" ${requestUrls['base']}/`;
  output.printRecord(
    { id, name, image, workers: `${workers.min} to ${workers.max}`, ...requestUrls },
    ...(rest.reason === undefined ? [] : [rest.reason]),
    ...(packages === undefined || rest.ready === true
      ? []
      : [
          `The packages in ${packages} are installed once, from now on; a first job waits for that and says so.`,
        ]),
    next,
  );
}

/**
 * Where a Docker daemon runs, it and the registry are asked, with the credentials that workers of the
 * endpoint would use; elsewhere the image cannot be checked.
 */
async function checkImageExists(
  client: ApiClient,
  image: string,
  name: string,
  registry: string | undefined,
): Promise<void> {
  const used = registry ?? findEndpointIn(await listEndpoints(client), name)?.registry ?? undefined;
  const query = new URLSearchParams({ image, ...(used !== undefined && { registry: used }) });
  const answer = await client.send('GET', `/v2/images/check?${query.toString()}`);
  // An older server does not have this.
  if (!answer.ok) return;
  const { problem } = (await answer.json()) as { problem: string | null };
  if (problem !== null)
    throw new CliError(`${escapeControlCharacters(problem)}; --force deploys it all the same`);
}

/** Whether the handler imports the public SDK without a list of packages; berth.json may name a Python that has it. */
function lacksSdk(files: readonly ImageFile[]): boolean {
  const handler = files.find(({ path }) => path === 'handler.py');
  return (
    handler !== undefined &&
    !files.some(({ path }) => path === 'berth.json' || PACKAGE_LISTS.includes(path)) &&
    /^\s*(?:import|from)\s+runpod\b/m.test(Buffer.from(handler.content).toString('utf8'))
  );
}

/** The id of saved registry credentials. */
async function findRegistry(client: ApiClient, word: string): Promise<string> {
  const { rows } = await client.list<{ id: string; name: string }>('/v2/registries', 'registries');
  const found = rows.find(({ id }) => id === word) ?? rows.find(({ name }) => name === word);
  if (found !== undefined) return found.id;
  throw new CliError(
    `there are no registry credentials ${JSON.stringify(word)}; ${
      rows.length === 0
        ? 'none are saved: "berth registry create" saves some'
        : `saved are: ${rows.map(({ name }) => name).join(', ')}`
    }`,
  );
}

/** A worker with a missing secret would never start. */
async function checkSecretsExist(client: ApiClient, env: Record<string, string>): Promise<void> {
  const wanted = referencedSecrets(env);
  if (wanted.length === 0) return;
  const { rows } = await client.list<{ name: string }>('/v2/account/secrets', 'secrets');
  const missing = wanted.filter((name) => !rows.some((secret) => secret.name === name));
  if (missing.length > 0)
    throw new CliError(
      `secrets that do not exist: ${missing.join(', ')}; create them with "berth secret create --set ` +
        `name=${missing[0]} --set value=@-", or deploy all the same with --force`,
    );
}

/** An image name whose first part is a local folder is probably a mistake, unless it has a tag. */
async function isBesideFolders(source: string): Promise<boolean> {
  return source.includes('/') && !/[:@]/.test(source) && (await isFolder(dirname(source)));
}

/** Says at once if no connected engine can run the image, instead of at the first job. */
async function warnIfNotRunnable(
  client: ApiClient,
  endpoint: EndpointView,
  stderr: OutputStream,
): Promise<void> {
  const { reason } = await listWorkers(client, endpoint);
  if (reason?.startsWith('no worker can be placed') === true)
    writeLine(stderr, `berth: ${escapeControlCharacters(reason)}`);
}

/** `ghcr.io/me/worker:1` is called worker. */
function imageBaseName(image: string): string {
  return (image.split('/').at(-1) ?? image).replace(/[:@].*$/, '') || image;
}

/** Quotes a name for a shell. */
function shellQuote(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", `'\\''`)}'`;
}
