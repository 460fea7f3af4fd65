import type { ApiClient } from '../api-client.ts';
import type { Options, OptionValues } from '../command-definition.ts';
import { UsageError } from '../cli.errors.ts';
import { noSuchGpu } from '../serverless/gpu-choice.ts';
import { parseCount, parseCpu, parseVariable } from '../serverless/deploy-options.ts';
import { DEFAULT_CPU_CHOICE } from '../../domain/catalog/cpu-selection.ts';
import { POD_DEFAULTS } from '../../domain/pods/pod-input.ts';
import { V2_PERSISTENT_DISK_GB } from '../../domain/limits.ts';

/** Options of `berth pod create`. */
export const podCreateOptions = {
  name: { kind: 'text', value: 'NAME', description: 'The name of the pod. Default: the name of the image.' },
  gpu: { kind: 'text', value: 'TYPE', description: 'A GPU type of the catalog. Default: no GPU.' },
  'gpu-count': { kind: 'text', value: 'N', description: 'How many of them. Default: 1.' },
  cpu: {
    kind: 'text',
    value: 'FLAVOR[-N]',
    description: 'A CPU flavour of the catalog, and how many vCPUs. Default: cpu3c-2.',
  },
  port: {
    kind: 'list',
    value: 'PORT[/http|/tcp]',
    description: 'A port that the pod listens on. Default protocol: http. May be repeated.',
  },
  env: { kind: 'list', value: 'NAME=VALUE', description: 'An environment variable. May be repeated.' },
  disk: {
    kind: 'text',
    value: 'GB',
    description: 'The size of the container disk, which is empty after a stop.',
  },
  volume: {
    kind: 'text',
    value: 'GB[:PATH]',
    description:
      `A disk of at least ${V2_PERSISTENT_DISK_GB.minimum} GB that stays until the pod is removed, ` +
      `and where it is mounted. Default path: ${POD_DEFAULTS.volumePath}.`,
  },
  'network-volume': {
    kind: 'text',
    value: 'ID[:PATH]',
    description: `A network volume; it is kept when the pod is removed. Default path: ${POD_DEFAULTS.volumePath}.`,
  },
  'data-center': {
    kind: 'list',
    value: 'ID',
    description: 'Where it may run. May be repeated. Default: anywhere.',
  },
  template: {
    kind: 'text',
    value: 'ID',
    description: 'A template with the defaults for everything that is not given.',
  },
  registry: { kind: 'text', value: 'ID', description: 'Saved credentials to pull the image with.' },
  ssh: {
    kind: 'switch',
    description:
      "Put the account's SSH keys into its environment (PUBLIC_KEY), for images with an SSH server; declares port 22.",
  },
  jupyter: {
    kind: 'switch',
    description: 'Put a password for Jupyter into its environment (JUPYTER_PASSWORD).',
  },
} as const satisfies Options;

type Values = Omit<OptionValues<typeof podCreateOptions>, 'json'>;

/** The request body that creates a pod. */
export async function podCreateBody(
  client: ApiClient,
  image: string | undefined,
  command: readonly string[],
  options: Values,
): Promise<Record<string, unknown>> {
  const { gpu, cpu, disk, volume, template, registry, ssh, jupyter } = options;
  if (gpu !== undefined && cpu !== undefined) throw new UsageError('--gpu and --cpu exclude each other');
  if (options['gpu-count'] !== undefined && gpu === undefined)
    throw new UsageError('--gpu-count goes with --gpu');
  if (volume !== undefined && options['network-volume'] !== undefined)
    throw new UsageError('--volume and --network-volume exclude each other');
  if (image === undefined && template === undefined)
    throw new UsageError('IMAGE is missing; name one, or a --template that has one');
  const ports = options.port.map(parsePort);
  if (ssh && !ports.some((port) => port.startsWith('22/'))) ports.push('22/tcp');
  const size = parseCount('disk', disk, 1);
  const count = parseCount('gpu-count', options['gpu-count'], 1);
  const mounts = mountsOf(volume, options['network-volume']);
  return {
    name: options.name ?? imageBaseName(image ?? 'pod'),
    ...(image !== undefined && { image }),
    ...(command.length > 0 && { cmd: command }),
    ...(gpu === undefined
      ? { cpu: cpu === undefined ? DEFAULT_CPU_CHOICE : parseCpu(cpu) }
      : { gpu: { id: await gpuType(client, gpu), ...(count !== undefined && { count }) } }),
    ...(ports.length > 0 && { ports }),
    ...(options.env.length > 0 && { env: Object.fromEntries(options.env.map(parseVariable)) }),
    ...(size !== undefined && { disk: size }),
    ...mounts,
    ...(options['data-center'].length > 0 && { dataCenterIds: options['data-center'] }),
    ...(template !== undefined && { templateId: template }),
    ...(registry !== undefined && { registry }),
    ...(ssh && { startSsh: true }),
    ...(jupyter && { startJupyter: true }),
  };
}

function mountsOf(volume: string | undefined, network: string | undefined): Record<string, unknown> {
  if (volume !== undefined) {
    const [size, path] = splitPath(volume);
    return {
      mounts: { persistent: { size: parseCount('volume', size, V2_PERSISTENT_DISK_GB.minimum), path } },
    };
  }
  if (network === undefined) return {};
  const [volumeId, path] = splitPath(network);
  return { mounts: { network: [{ volumeId, path }] } };
}

function splitPath(text: string): [string, string] {
  const colon = text.indexOf(':');
  return colon === -1 ? [text, POD_DEFAULTS.volumePath] : [text.slice(0, colon), text.slice(colon + 1)];
}

function parsePort(text: string): string {
  const [, number, protocol = 'http'] = /^(\d{1,6})(?:\/(http|tcp))?$/.exec(text) ?? [];
  if (number === undefined)
    throw new UsageError(
      `--port is ${JSON.stringify(text)}; allowed: a port and its kind, such as 8000/http or 22/tcp`,
    );
  return `${number}/${protocol}`;
}

async function gpuType(client: ApiClient, word: string): Promise<string> {
  const { rows } = await client.list<{ id: string; name: string }>('/v2/catalog/gpus', 'gpus');
  const found = rows.find(({ id, name }) =>
    [id, name].some((text) => text.toLowerCase() === word.toLowerCase()),
  );
  if (found !== undefined) return found.id;
  throw noSuchGpu('GPU type', word, rows);
}

/** For example, `ghcr.io/me/jupyter:1` becomes jupyter. */
function imageBaseName(image: string): string {
  return (image.split('/').at(-1) ?? image).replace(/[:@].*$/, '') || image;
}
