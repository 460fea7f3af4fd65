import { dataCenterListType } from './data-centers.setting.ts';
import {
  dateType,
  key32Type,
  listOrWordType,
  enumType,
  optionalTextType,
  textType,
  booleanType,
  urlType,
  wholeNumberType,
} from './setting-type.ts';
import { defineSetting, environmentVariableOf, type Setting } from './setting.ts';
import { operationLimitType, type OperationLimit } from './operation-limit.setting.ts';
import { noPrices, pricesType } from './prices.setting.ts';
import { isSubnet } from '../subnet.ts';

/** What one account may do with one endpoint through the job interface. */
function jobLimit(operation: string, per10s: number, concurrent: number): Setting<OperationLimit | 'off'> {
  return defineSetting({
    type: operationLimitType(),
    default: { per10s, concurrent },
    description: `How often one account may call ${operation} on one endpoint: in ten seconds, and at the same time. Where many workers run, the first is 100 for each of them if that is more.`,
  });
}

/**
 * Every knob of Berth, in the order in which people read about them. An entry here is all
 * that a new one needs: its type in `Config`, its variable, its checks, its line in
 * `berth config` and in docs/configuration.md follow from it.
 */
export const settings = {
  host: defineSetting({
    type: textType('a host name or an IP address', (value) => /^[A-Za-z0-9._:%-]+$/.test(value)),
    default: '127.0.0.1',
    flag: true,
    description:
      'The address to listen on. Loopback keeps Berth to this machine; 0.0.0.0 or :: opens it to the network.',
  }),
  port: defineSetting({
    type: wholeNumberType(0, 65535),
    default: 8484,
    flag: true,
    description: 'The port to listen on. 0 takes a free one; the line "berth is up at" says which.',
  }),
  data: defineSetting({
    type: textType('the path of a folder', (value) => value !== '' && !value.includes('\0')),
    default: './.berth',
    flag: true,
    description:
      'The folder for what Berth keeps: the SQLite database, the root key, volumes and logs. Change it to put them on another disk.',
  }),
  database: defineSetting({
    type: optionalTextType('an address such as postgres://user:password@host:5432/berth', (value) =>
      /^postgres(ql)?:\/\//.test(value) && URL.canParse(value) ? value : undefined,
    ),
    default: '',
    flag: true,
    variable: 'BERTH_DATABASE_URL',
    secret: true,
    description:
      'A PostgreSQL database for the state and the queue. Empty means SQLite in the data folder. Several Berth servers that share the work need PostgreSQL.',
  }),
  databasePool: defineSetting({
    type: wholeNumberType(1, 1000),
    default: 10,
    description:
      'How many connections this server opens to PostgreSQL at most for its work, at least two; two more are for its word with the other servers. All servers together must stay below what the database allows.',
  }),
  publicUrl: defineSetting({
    type: urlType(),
    default: '',
    description:
      'The address under which clients reach Berth, where that is not the one it listens on: behind a proxy or a load balancer. Empty derives it from host and port.',
  }),
  workerUrl: defineSetting({
    type: urlType(),
    default: '',
    description:
      'The address under which workers and pods reach Berth, where theirs differs from the public one. Empty lets each engine choose.',
  }),
  domain: defineSetting({
    type: optionalTextType('a host name such as berth.example.com', (value) =>
      /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(value) ? value.toLowerCase() : undefined,
    ),
    default: '',
    description:
      'A domain whose names *.<domain> all lead here. Load balancing endpoints are then reached as {endpoint_id}.<domain> too. Empty leaves them to their paths.',
  }),
  rootKey: defineSetting({
    type: optionalTextType('at least 16 characters without spaces', (value) =>
      /^[!-~]{16,}$/.test(value) ? value : undefined,
    ),
    default: '',
    secret: true,
    description:
      'The API key of the root account, for installations that hand out their keys themselves. Empty makes one at the first start and keeps it in the data folder.',
  }),
  masterKey: defineSetting({
    type: key32Type(),
    default: '',
    secret: true,
    description:
      'The key that seals secrets, registry passwords and environment values at rest. Empty makes one and keeps it in the data folder; ' +
      'set it to keep the key apart from the data, and alike on all servers of one database. Values sealed with a lost key are lost.',
  }),
  'log.level': defineSetting({
    type: enumType(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    default: 'info',
    description:
      'The least level that is logged. debug and trace are for finding a fault; warn and above keep a busy log short.',
  }),
  'log.format': defineSetting({
    type: enumType(['auto', 'json', 'text']),
    default: 'auto',
    description:
      'json is one object per line, for collectors; text is for people. auto is text on a terminal and json elsewhere.',
  }),
  stopTimeout: defineSetting({
    type: wholeNumberType(0, 3600),
    default: 10,
    description:
      'How many seconds requests under way get to end when Berth is told to stop. Raise it where long synchronous calls should outlast a deployment.',
  }),
  fastPath: defineSetting({
    type: booleanType(['on', 'off']),
    default: true,
    description:
      "Whether Berth reads small, plain requests of the job API with its own HTTP parser instead of Node's. " +
      'It takes about half of the processor time; everything unusual goes to Node. Turn it off to rule it out when you look for a fault.',
  }),
  rateLimits: defineSetting({
    type: booleanType(['on', 'off']),
    default: true,
    description:
      'Whether any rate limit applies. Switch it off for load tests, or where a proxy in front already limits.',
  }),
  'rateLimit.perMinute': defineSetting({
    type: wholeNumberType(1),
    default: 3000,
    description: 'How many requests of REST v2 one key may make in a minute.',
  }),
  'rateLimit.perHour': defineSetting({
    type: wholeNumberType(1),
    default: 60000,
    description: 'How many requests of REST v2 one key may make in an hour.',
  }),
  'rateLimit.perDay': defineSetting({
    type: wholeNumberType(1),
    default: 1000000,
    description: 'How many requests of REST v2 one key may make in a day.',
  }),
  'jobLimits.run': jobLimit('run', 1000, 200),
  'jobLimits.runsync': jobLimit('runsync', 2000, 400),
  'jobLimits.status': jobLimit('status', 2000, 400),
  'jobLimits.statusSync': jobLimit('status-sync', 2000, 400),
  'jobLimits.stream': jobLimit('stream', 2000, 400),
  'jobLimits.openai': jobLimit('openai', 2000, 400),
  'jobLimits.cancel': jobLimit('cancel', 100, 20),
  'jobLimits.retry': jobLimit('retry', 100, 20),
  'jobLimits.purgeQueue': jobLimit('purge-queue', 2, 2),
  'jobLimits.requests': jobLimit('requests', 10, 2),
  'jobLimits.health': jobLimit('health', 2000, 400),
  'v1.enabled': defineSetting({
    type: booleanType(['true', 'false']),
    default: true,
    description: 'Whether REST v1 is served. Turn it off once every client has moved to v2.',
  }),
  'v1.sunset': defineSetting({
    type: dateType(),
    default: '2026-11-15',
    description:
      'The day that answers of REST v1 announce as their last. v1 is served after it, unless it is turned off.',
  }),
  'graphql.maxDepth': defineSetting({
    type: wholeNumberType(1, 1000),
    default: 20,
    description:
      'How deep the selections of a GraphQL query may nest. It bounds the work that one request can cause.',
  }),
  'graphql.maxFields': defineSetting({
    type: wholeNumberType(1),
    default: 2000,
    description: 'How many fields a GraphQL query may select in all, with its fragments spread out.',
  }),
  'webhooks.allowPrivate': defineSetting({
    type: booleanType(['true', 'false']),
    default: false,
    description:
      'Whether webhooks may go to loopback and private addresses. Whoever can submit a job chooses the address, ' +
      'so allow it only where all of them may reach your network, or for trials on one machine.',
  }),
  'webhooks.attempts': defineSetting({
    type: wholeNumberType(1, 100),
    default: 3,
    description:
      'How often a webhook is tried in all before it counts as failed. Any answer from 200 to 299 ends the tries.',
  }),
  'webhooks.pause': defineSetting({
    type: wholeNumberType(0, 3600),
    default: 10,
    description:
      'How many seconds lie between two tries of a webhook. Raise it, or the number of tries, where receivers are away for longer.',
  }),
  'webhooks.timeout': defineSetting({
    type: wholeNumberType(1, 300),
    default: 10,
    description: 'How many seconds a receiver of a webhook has to answer before the try has failed.',
  }),
  'webhooks.keepLog': defineSetting({
    type: wholeNumberType(1, 8760),
    default: 72,
    description:
      'How many hours a webhook stays in the delivery log after it was delivered or has failed, and can be sent once more. The log holds what was sent: lower it where results are large.',
  }),
  gpus: defineSetting({
    type: listOrWordType(['auto', 'none'], 'GPU type ids'),
    default: 'auto',
    description:
      'The GPU types on offer. auto offers those that are found, and virtual ones of three common types where there are none; ' +
      'a list names the types of the virtual ones, two of each unless a number stands before it; none offers no virtual GPU.',
    example: 'gpus: [NVIDIA GeForce RTX 4090, 8x NVIDIA A40]',
  }),
  dataCenters: defineSetting({
    type: dataCenterListType(),
    default: [{ id: 'LOCAL-1' }],
    description:
      'The places where pods and workers run. Each is served by one engine; without one named, it is processes on this machine. ' +
      'Where none is given to Docker and a daemon answers, DOCKER-1 is there too.',
    example:
      'dataCenters:\n  - { id: LOCAL-1 }\n  - { id: EU-1, name: Rack 7, region: EUROPE, engine: docker }',
  }),
  docker: defineSetting({
    type: textType(
      'auto, off, or an address such as unix:///var/run/docker.sock',
      (value) =>
        value === 'auto' || value === 'off' || /^(unix|npipe|tcp|http|https|ssh):\/\/\S+$/.test(value),
    ),
    default: 'auto',
    description:
      'Where the Docker daemon is, or Podman with the same interface. auto goes by DOCKER_HOST and then looks in the usual places, at the start and every few seconds until one answers; off leaves Docker alone.',
    example: 'docker: unix:///run/user/1000/podman/podman.sock',
  }),
  ecrEndpoint: defineSetting({
    type: urlType(),
    default: '',
    description:
      "Where logins for delegated ECR registries are asked for, in place of Amazon's own address: a private endpoint of your network. The AWS identity is that of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
  }),
  clusterNetwork: defineSetting({
    type: textType('a range of IPv4 addresses such as 10.65.0.0/16, from /8 to /24', isSubnet),
    default: '10.65.0.0/16',
    description:
      'Where the networks of clusters are taken from on engines that run containers, 256 addresses for each. Change it where your own network has these addresses.',
  }),
  prices: defineSetting({
    type: pricesType(),
    default: noPrices,
    description:
      'Prices in US dollars: of an hour by GPU or CPU type, of a GB and month by kind of disk. What is not named costs nothing. Set them so that usage shows what your machines cost; docs/billing.md tells more.',
    example:
      'prices:\n  gpu: { NVIDIA A40: 0.40 }\n  cpu: { cpu3c: 0.04 }\n  disk: { container: 0.10, networkVolume: 0.07 }',
  }),
};

export type SettingPath = keyof typeof settings;

/** The knobs as a plain list, for what treats them all alike. */
export const settingList: readonly { path: SettingPath; setting: Setting; variable: string | undefined }[] =
  Object.entries(settings).map(([path, entry]) => ({
    path: path as SettingPath,
    setting: entry,
    variable: environmentVariableOf(path, entry),
  }));
