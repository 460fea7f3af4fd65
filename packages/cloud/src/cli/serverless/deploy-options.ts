import { UsageError } from '../cli.errors.ts';
import type { Options, OptionValues } from '../command-definition.ts';
import type { EndpointView, GpuChoice } from './endpoint-client.ts';
import { ENDPOINT_DEFAULTS } from '../../domain/endpoints/endpoint-defaults.ts';
import { DEFAULT_CPU_CHOICE } from '../../domain/catalog/cpu-selection.ts';

/** Options of `berth deploy`. */
export const deployOptions = {
  type: {
    kind: 'text',
    choices: ['queue', 'lb'],
    description:
      'Jobs that wait in a queue, or HTTP requests straight to the workers (load balancing). It cannot ' +
      'be changed later. Default: queue.',
  },
  gpu: {
    kind: 'text',
    value: 'TYPE[,TYPE]',
    description: 'GPU types or pools of the catalog that a worker may have. Default: no GPU.',
  },
  'gpu-count': { kind: 'text', value: 'N', description: 'GPUs of each worker. Default: 1.' },
  cpu: {
    kind: 'text',
    value: 'FLAVOR[-N]',
    description: 'A CPU flavour of the catalog, and how many vCPUs. Default: cpu3c-2.',
  },
  min: { kind: 'text', value: 'N', description: 'Workers that always run. Default: 0.' },
  max: { kind: 'text', value: 'N', description: 'The maximum number of workers. Default: 3.' },
  env: {
    kind: 'list',
    value: 'NAME=VALUE',
    description:
      'An environment variable of the workers; added to those that the endpoint has. May be repeated.',
  },
  idle: { kind: 'text', value: 'SECONDS', description: 'How long a worker without work stays. Default: 10.' },
  port: {
    kind: 'text',
    value: 'N',
    description:
      'The port that a load balanced worker listens on. On the process engine it gets a free one in PORT.',
  },
  registry: {
    kind: 'text',
    value: 'NAME',
    description:
      'Saved credentials for a private image, by name or id; "berth registry create" saves some. An ' +
      'endpoint that exists keeps those that it has.',
  },
  accelerate: {
    kind: 'switch',
    description:
      'Give workers with the public Python SDK (1.7 to 1.12) the fast worker channel, without a change to them.',
  },
  'data-center': {
    kind: 'list',
    value: 'ID',
    description: 'Where workers may run. May be repeated. Default: anywhere.',
  },
} as const satisfies Options;

type DeployOptionValues = Omit<OptionValues<typeof deployOptions>, 'json'>;

/** The parsed and checked options. Options that were not given are absent. */
export interface DeploySettings {
  type: EndpointView['type'] | undefined;
  /** GPU types and pools, as typed. */
  gpu: string[] | undefined;
  gpuCount: number | undefined;
  cpu: { id: string; vcpuCount: number } | undefined;
  workers: { min?: number; max?: number; idleTimeout?: number };
  env: Record<string, string>;
  ports: string[] | undefined;
  dataCenterIds: string[] | undefined;
  accelerate: true | undefined;
  /** The name or id of saved registry credentials, as typed. */
  registry: string | undefined;
}

export function parseDeploySettings(options: DeployOptionValues): DeploySettings {
  const { type, gpu, cpu, min, max, idle, env, port } = options;
  if (gpu !== undefined && cpu !== undefined) throw new UsageError('--gpu and --cpu exclude each other');
  if (options['gpu-count'] !== undefined && gpu === undefined)
    throw new UsageError('--gpu-count goes with --gpu');
  const least = parseCount('min', min, 0);
  const most = parseCount('max', max, 0);
  const idleTimeout = parseCount('idle', idle, 1);
  if (least !== undefined && most !== undefined && least > most)
    throw new UsageError(`--min is ${least}, which is more than --max, ${most}`);
  const listensOn = parseCount('port', port, 1);
  return {
    type: type === undefined ? undefined : type === 'lb' ? 'LOAD_BALANCER' : 'QUEUE',
    gpu: gpu === undefined ? undefined : parseList('gpu', gpu),
    gpuCount: parseCount('gpu-count', options['gpu-count'], 1),
    cpu: cpu === undefined ? undefined : parseCpu(cpu),
    workers: {
      ...(least !== undefined && { min: least }),
      ...(most !== undefined && { max: most }),
      ...(idleTimeout !== undefined && { idleTimeout }),
    },
    env: Object.fromEntries(env.map(parseVariable)),
    ports: listensOn === undefined ? undefined : [`${listensOn}/http`],
    dataCenterIds: options['data-center'].length === 0 ? undefined : options['data-center'],
    accelerate: options.accelerate ? true : undefined,
    registry: options.registry,
  };
}

/** The request body that creates an endpoint. */
export function endpointCreateBody(
  name: string,
  image: string,
  order: DeploySettings,
  gpu: GpuChoice | undefined,
): Record<string, unknown> {
  const { type = 'QUEUE', cpu = DEFAULT_CPU_CHOICE, workers, env } = order;
  // The maximum must not be below the minimum.
  const max = workers.max ?? (workers.min === undefined ? undefined : Math.max(workers.min, 3));
  return {
    name,
    type,
    image,
    scaling:
      type === 'QUEUE'
        ? { type: 'QUEUE_DELAY', queueDelay: ENDPOINT_DEFAULTS.scalerValue }
        : { type: 'REQUEST_COUNT', requestCount: ENDPOINT_DEFAULTS.scalerValue },
    workers: { ...workers, ...(max !== undefined && { max }) },
    ...(gpu === undefined
      ? { cpu: [cpu] }
      : { gpu: { ...gpu, ...(order.gpuCount !== undefined && { count: order.gpuCount }) } }),
    ...(Object.keys(env).length > 0 && { env }),
    ...optionalFields(order),
  };
}

/** The request body that updates the image of an endpoint, and only the settings that were given. */
export function endpointUpdateBody(
  present: EndpointView,
  image: string,
  order: DeploySettings,
  gpu: GpuChoice | undefined,
): Record<string, unknown> {
  const { type, cpu, workers, env } = order;
  if (type !== undefined && type !== present.type) {
    throw new UsageError(
      `endpoint ${JSON.stringify(present.name)} is of type ` +
        `${present.type === 'QUEUE' ? 'queue' : 'lb'}, and that is fixed; choose another --name, or ` +
        `remove it with "berth rm ${present.id}"`,
    );
  }
  return {
    image,
    ...(Object.keys(workers).length > 0 && { workers }),
    ...(cpu !== undefined && { cpu: [cpu] }),
    ...(gpu !== undefined && {
      gpu: { ...gpu, ...(order.gpuCount !== undefined && { count: order.gpuCount }) },
    }),
    ...(Object.keys(env).length > 0 && { env: { ...present.env, ...env } }),
    ...optionalFields(order),
  };
}

function optionalFields({
  ports,
  dataCenterIds,
  accelerate,
  registry,
}: DeploySettings): Record<string, unknown> {
  return {
    ...(ports !== undefined && { ports }),
    ...(dataCenterIds !== undefined && { dataCenterIds }),
    ...(accelerate !== undefined && { accelerate }),
    ...(registry !== undefined && { registry }),
  };
}

/** A whole number of at least `least`; undefined if the option was not given. */
export function parseCount(name: string, text: string | undefined, least: number): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text) || Number(text) < least)
    throw new UsageError(
      `--${name} is ${JSON.stringify(text)}; allowed: a whole number of at least ${least}`,
    );
  return Number(text);
}

function parseList(name: string, text: string): string[] {
  const items = text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
  if (items.length === 0)
    throw new UsageError(
      `--${name} is ${JSON.stringify(text)}; allowed: one or more names, with commas between them`,
    );
  return items;
}

export function parseCpu(text: string): { id: string; vcpuCount: number } {
  const [, id, count] = /^([A-Za-z0-9]+)(?:-(\d{1,4}))?$/.exec(text) ?? [];
  if (id === undefined)
    throw new UsageError(
      `--cpu is ${JSON.stringify(text)}; allowed: a flavour and the number of vCPUs, such as cpu3c-2`,
    );
  return { id, vcpuCount: count === undefined ? DEFAULT_CPU_CHOICE.vcpuCount : Number(count) };
}

export function parseVariable(text: string): [string, string] {
  const equals = text.indexOf('=');
  if (equals < 1) throw new UsageError(`--env is ${JSON.stringify(text)}; allowed: NAME=VALUE`);
  return [text.slice(0, equals), text.slice(equals + 1)];
}
