import { BerthError } from '../../support/errors.ts';
import { SNAPSHOT_IMAGE_VARIABLE } from '../deployed-folders.ts';
import type { InstanceSpec } from '../instance.ts';
import type { InspectedImage } from './client/docker-objects.ts';
import type { Daemon } from './daemon.ts';
import { isNotFound, daemonStatus, daemonMessage } from './client/docker.errors.ts';
import { registryLogin, parseReference } from '../image-reference.ts';
import { jsonLines } from './client/json-lines.ts';
import { type PullMessage, PullProgress } from './pull-progress.ts';

/** Messages of registries for errors that a retry does not fix. */
const PERMANENT_PULL_ERRORS = [
  /not found/i,
  /manifest unknown/i,
  /does not exist/i,
  /denied/i,
  /unauthorized/i,
  /authentication required/i,
  /no matching manifest/i,
  /invalid reference/i,
  /no basic auth credentials/i,
  /unsupported media type/i,
];

/** Pulls the image unless the daemon has it, and answers whether it did. An existing image is not updated. */
export async function ensureImage(
  daemon: Daemon,
  { image, registry, env }: Pick<InstanceSpec, 'image' | 'registry' | 'env'>,
  reportProgress: (line: string) => Promise<void>,
  signal: AbortSignal,
  checkSpace: () => Promise<void> = async () => undefined,
): Promise<boolean> {
  const { full } = parseReference(image);
  if (await hasImage(daemon, full)) return false;
  await reportProgress(`Pulling the image ${image}.`);
  const client = await daemon.client();
  try {
    const stream = await client.stream('POST', '/images/create', {
      query: { fromImage: full },
      headers: registryHeaders(image, registry),
      signal,
    });
    const progress = new PullProgress();
    for await (const message of jsonLines<PullMessage>(stream)) {
      if (message.error !== undefined) throw new Error(message.error);
      // To leave the stream ends the pull, and the daemon deletes what it has of it.
      await checkSpace();
      const line = progress.update(message);
      if (line !== undefined) await reportProgress(line);
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const pullError = toPullError(image, error, registry !== undefined);
    const folder = env[SNAPSHOT_IMAGE_VARIABLE];
    throw folder === undefined ? pullError : withRunnerHint(pullError, folder);
  }
  // An aborted stream may end like a finished one.
  signal.throwIfAborted();
  await reportProgress('The image is here.');
  return true;
}

/**
 * Why the image cannot be had: neither the daemon nor its registry has it. Undefined if it can, or if that
 * cannot be told now, for example without a network.
 */
export async function imageLookupProblem(
  daemon: Daemon,
  { image, registry }: Pick<InstanceSpec, 'image' | 'registry'>,
): Promise<string | undefined> {
  const { full } = parseReference(image);
  try {
    if (await hasImage(daemon, full)) return undefined;
    const headers = registryHeaders(image, registry);
    await daemon.call((client) => client.get(`/distribution/${full}/json`, {}, { headers }));
    return undefined;
  } catch (error) {
    const problem = toPullError(image, error, registry !== undefined);
    return problem.code === 'rule' ? problem.message : undefined;
  }
}

/** The credentials for the daemon to use, if there are any. */
function registryHeaders(image: string, registry: InstanceSpec['registry']): Record<string, string> {
  if (registry === undefined) return {};
  const login = Buffer.from(JSON.stringify(registryLogin(image, registry))).toString('base64');
  // The alphabet for URLs, but padded, as the daemon reads it.
  return { 'x-registry-auth': login.replaceAll('+', '-').replaceAll('/', '_') };
}

/** Nobody named this image for the endpoint, so the message says where it comes from. */
function withRunnerHint({ code, message, cause }: BerthError, folder: string): BerthError {
  return new BerthError(
    code,
    `${message} (it is the runner image of ${folder}, from the setting runner.image or runner.pythonImage; ` +
      'docs/deploy.md says how to build one)',
    { cause },
  );
}

async function hasImage(daemon: Daemon, image: string): Promise<boolean> {
  try {
    await daemon.call((client) => client.get<InspectedImage>(`/images/${image}/json`));
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

/** Messages of registries for missing or wrong credentials. */
const AUTHENTICATION_ERRORS = [
  /denied/i,
  /unauthorized/i,
  /authentication required/i,
  /no basic auth credentials/i,
  /\b40[13]\b/,
];

export function toPullError(image: string, error: unknown, hasCredentials = false): BerthError {
  const message = daemonMessage(error);
  const status = daemonStatus(error);
  const isPermanent =
    status === 400 || status === 404 || PERMANENT_PULL_ERRORS.some((pattern) => pattern.test(message));
  const hint = !AUTHENTICATION_ERRORS.some((pattern) => pattern.test(message))
    ? ''
    : hasCredentials
      ? ' (the registry does not accept the saved credentials: replace them)'
      : ' (the registry asks for credentials: save some with "berth registry create", and name them, ' +
        'as in "berth deploy --registry NAME")';
  return new BerthError(
    isPermanent ? 'rule' : 'unavailable',
    `the image ${image} could not be pulled: ${message}${hint}`,
    { cause: error },
  );
}
