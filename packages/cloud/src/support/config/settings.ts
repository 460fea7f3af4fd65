import { dataCenterListType } from './data-centers.setting.ts';
import {
  byteSizeType,
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
import { limitsType } from './limits.setting.ts';
import { operationLimitType, type OperationLimit } from './operation-limit.setting.ts';
import { noPrices, pricesType } from './prices.setting.ts';
import { isSubnet } from '../subnet.ts';
import { parseUserRange } from '../user-range.ts';

/** The rate limit of one operation of the job API, for each account and endpoint. */
function jobLimit(operation: string, per10s: number, concurrent: number): Setting<OperationLimit | 'off'> {
  return defineSetting({
    type: operationLimitType(),
    default: { per10s, concurrent },
    description: `How many ${operation} calls one account may make to one endpoint: in ten seconds, and at the same time. With many workers, the limit for ten seconds rises to 100 per worker.`,
  });
}

/**
 * Every setting, in the order of the documentation. A new setting needs only an entry here: its
 * type in `Config`, its environment variable, its checks, its line in `berth config` and in
 * docs/configuration.md follow from it.
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
    description: 'The port to listen on. 0 takes a free port, which the line "berth is up at" shows.',
  }),
  data: defineSetting({
    type: textType('the path of a folder', (value) => value !== '' && !value.includes('\0')),
    default: './.berth',
    flag: true,
    description:
      'The data folder: the SQLite database, the root key, volumes and logs. Change it to put them on another disk.',
  }),
  diskReserve: defineSetting({
    type: byteSizeType(0),
    default: 64_000_000,
    description:
      'The size of a file in the data folder that keeps space free. When the disk is full, it is given back step by step, so that Berth can delete, answer and start. 0: none. On a small disk it takes at most a tenth of what is free.',
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
      'The address of a PostgreSQL database for the state and the queue. Empty: SQLite in the data folder. Several Berth servers that work together need PostgreSQL.',
  }),
  databasePool: defineSetting({
    type: wholeNumberType(1, 1000),
    default: 10,
    description:
      'The maximum number of connections of this server to PostgreSQL, at least two. Two more connect it with the other servers. All servers together must stay below the limit of the database.',
  }),
  publicUrl: defineSetting({
    type: urlType(),
    default: '',
    description:
      'The URL at which clients reach Berth, if it is not the one it listens on: behind a proxy or a load balancer. Empty: built from host and port.',
  }),
  workerUrl: defineSetting({
    type: urlType(),
    default: '',
    description:
      'The URL at which workers and pods reach Berth, if it differs from the public one. Empty: chosen by each engine.',
  }),
  domain: defineSetting({
    type: optionalTextType('a host name such as berth.example.com', (value) =>
      /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(value) ? value.toLowerCase() : undefined,
    ),
    default: '',
    description:
      'A domain with wildcard DNS: every name *.<domain> resolves to this server. Load balancing endpoints are then also served at {endpoint_id}.<domain>, and pod ports at {pod_id}-{port}.<domain>. Empty: paths only.',
  }),
  rootKey: defineSetting({
    type: optionalTextType('at least 16 characters without spaces', (value) =>
      /^[!-~]{16,}$/.test(value) ? value : undefined,
    ),
    default: '',
    secret: true,
    description:
      'The API key of the root account, for installations that create their keys themselves. Empty: created at the first start and stored in the data folder.',
  }),
  masterKey: defineSetting({
    type: key32Type(),
    default: '',
    secret: true,
    description:
      'The key that encrypts secrets, registry passwords and environment values at rest. Empty: created at the first start and stored in the data folder. ' +
      'Set it to store the key apart from the data; all servers of one database need the same key. Without the key, encrypted values cannot be read.',
  }),
  'log.level': defineSetting({
    type: enumType(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    default: 'info',
    description:
      'The lowest level that is logged. Use debug or trace to find a fault, and warn for a short log.',
  }),
  'log.format': defineSetting({
    type: enumType(['auto', 'json', 'text']),
    default: 'auto',
    description:
      'json: one object per line, for log collectors. text: for people. auto: text on a terminal, otherwise json.',
  }),
  'instanceLog.size': defineSetting({
    type: byteSizeType(100_000),
    default: 16_000_000,
    description:
      'How much of the output of one pod or worker of the process engine is kept. The oldest lines are dropped beyond it, and the log says how many.',
  }),
  'instanceLog.rate': defineSetting({
    type: byteSizeType(10_000),
    default: 4_000_000,
    description:
      'How much output of one pod or worker of the process engine is logged per second, after a burst of the size above. Of more, the oldest lines are dropped, and the log says how many.',
  }),
  stopTimeout: defineSetting({
    type: wholeNumberType(0, 3600),
    default: 10,
    description:
      'How many seconds Berth waits for running requests when it stops. Raise it if long synchronous calls must survive a restart.',
  }),
  maxConnections: defineSetting({
    type: wholeNumberType(0),
    default: 0,
    description:
      'How many connections of clients may be open at a time. Beyond it, a connection is answered with 503 and closed. 0: 60 % of the limit of open files (ulimit -n), which leaves the rest for files, the database and workers.',
  }),
  fastPath: defineSetting({
    type: booleanType(['on', 'off']),
    default: true,
    description:
      "Whether small, plain requests to the job API are read by Berth's own HTTP parser instead of Node's. " +
      'It needs about half of the CPU time; all other requests go to Node. Turn it off to exclude it when you look for a fault.',
  }),
  accelerate: defineSetting({
    type: booleanType(['on', 'off']),
    default: false,
    description:
      'Whether workers with the public Python SDK get the fast worker channel, on endpoints that do not say so themselves (`accelerate` in REST v2). See docs/python.md.',
  }),
  takeAhead: defineSetting({
    type: booleanType(['on', 'off']),
    default: true,
    description:
      'Whether one answer to job-take may carry several short jobs, for workers with the public Python SDK. It sleeps for a second between its requests, so that one job an answer is one job a second. See docs/python.md.',
  }),
  'pythonEnvironments.keepDays': defineSetting({
    type: wholeNumberType(0, 3650),
    default: 14,
    description:
      'How many days a Python environment of a deployed folder is kept after its last use, if no endpoint runs the folder any more. See docs/python.md.',
  }),
  'pythonEnvironments.maxGb': defineSetting({
    type: wholeNumberType(1),
    default: 50,
    description:
      'How many GB all Python environments may have together. Above that, those that were not used for the longest time are deleted; they are built again when they are needed. One that a worker or pod runs with stays.',
  }),
  rateLimits: defineSetting({
    type: booleanType(['on', 'off']),
    default: true,
    description:
      'Whether rate limits apply. Turn them off for load tests, or if a proxy in front of Berth limits requests.',
  }),
  'rateLimit.perMinute': defineSetting({
    type: wholeNumberType(1),
    default: 3000,
    description: 'How many REST v2 requests one key may make in a minute.',
  }),
  'rateLimit.perHour': defineSetting({
    type: wholeNumberType(1),
    default: 60000,
    description: 'How many REST v2 requests one key may make in an hour.',
  }),
  'rateLimit.perDay': defineSetting({
    type: wholeNumberType(1),
    default: 1000000,
    description: 'How many REST v2 requests one key may make in a day.',
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
  'limits.account': defineSetting({
    type: limitsType(),
    default: {},
    description:
      'The limits of each account that has none of its own, except the root account: see docs/quotas.md. Without an entry there is no limit. `berth account limits` sets those of one account.',
    example: 'limits:\n  account: { queuedJobs: 100000, queuedBytes: 1GB, pods: 20, spendPerMonth: 500 }',
  }),
  'limits.installation': defineSetting({
    type: limitsType(),
    default: {},
    description: 'The limits of all accounts together, with the same names.',
    example: 'limits:\n  installation: { volumeBytes: 2TB, queuedBytes: 10GB }',
  }),
  'limits.webhook': defineSetting({
    type: urlType(),
    default: '',
    description:
      'A URL that is told when an account has spent 80 % of its limit for the month, and when it has reached it. The body is signed like the webhooks of the root account.',
  }),
  'v1.enabled': defineSetting({
    type: booleanType(['true', 'false']),
    default: true,
    description: 'Whether REST v1 is served. Turn it off when every client uses v2.',
  }),
  'v1.sunset': defineSetting({
    type: dateType(),
    default: '2026-11-15',
    description:
      'The date in the Sunset header of REST v1. v1 is still served after it, unless it is turned off.',
  }),
  'graphql.maxDepth': defineSetting({
    type: wholeNumberType(1, 1000),
    default: 20,
    description:
      'How deeply the selections of a GraphQL query may be nested. It limits the work that one request can cause.',
  }),
  'graphql.maxFields': defineSetting({
    type: wholeNumberType(1),
    default: 2000,
    description: 'How many fields a GraphQL query may select in total, with its fragments expanded.',
  }),
  'webhooks.allowPrivate': defineSetting({
    type: booleanType(['true', 'false']),
    default: false,
    description:
      'Whether webhooks may be sent to loopback and private addresses. Everyone who can submit a job chooses the address, ' +
      'so allow it only if all of them may reach your network, or to try Berth on one machine.',
  }),
  'webhooks.attempts': defineSetting({
    type: wholeNumberType(1, 100),
    default: 3,
    description:
      'How many times a webhook is attempted before it has failed. A status from 200 to 299 is a success.',
  }),
  'webhooks.pause': defineSetting({
    type: wholeNumberType(0, 3600),
    default: 10,
    description:
      'How many seconds to wait between two attempts of a webhook. Raise it, or the number of attempts, if receivers are unavailable for longer.',
  }),
  'webhooks.timeout': defineSetting({
    type: wholeNumberType(1, 300),
    default: 10,
    description: 'How many seconds a webhook receiver has to answer before the attempt has failed.',
  }),
  'webhooks.keepLog': defineSetting({
    type: wholeNumberType(1, 8760),
    default: 72,
    description:
      'How many hours a webhook stays in the delivery log after it was delivered or has failed. Until then it can be sent again. The log stores the bodies: lower it if results are large.',
  }),
  'backup.every': defineSetting({
    type: wholeNumberType(0, 8760),
    default: 24,
    description:
      'How many hours lie between two scheduled backups. They are made if backup.target is set; 0 turns them off. See docs/backup.md.',
  }),
  'backup.target': defineSetting({
    type: optionalTextType('the path of a folder, or an S3 bucket such as s3://bucket/prefix', (value) =>
      value.includes('\0') || (value.includes('://') && !/^s3:\/\/[^/]+/.test(value)) ? undefined : value,
    ),
    default: '',
    description:
      'Where scheduled backups go: a folder, on another disk if it shall survive the loss of this one, or s3://bucket/prefix with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment. They hold the keys of this installation. Empty: no scheduled backups.',
  }),
  'backup.keep': defineSetting({
    type: wholeNumberType(1, 10_000),
    default: 7,
    description: 'How many scheduled backups are kept. The oldest ones are deleted after a new one was made.',
  }),
  'backup.volumes': defineSetting({
    type: booleanType(['true', 'false']),
    default: false,
    description: 'Whether scheduled backups contain network volumes and the disks of pods.',
  }),
  'backup.s3Endpoint': defineSetting({
    type: urlType(),
    default: '',
    description: 'The address of the S3 service of backup.target, if it is not AWS.',
  }),
  'backup.s3Region': defineSetting({
    type: textType('the name of a region', (value) => /^[A-Za-z0-9-]+$/.test(value)),
    default: 'us-east-1',
    description: 'The region of the S3 bucket of backup.target.',
  }),
  gpus: defineSetting({
    type: listOrWordType(['auto', 'none'], 'GPU type ids'),
    default: 'auto',
    description:
      'The GPUs that can be rented. auto: the GPUs of this machine, or virtual ones of three common types if it has none. ' +
      'A list: virtual GPUs of these types, two of each unless a number precedes the type. none: no virtual GPUs.',
    example: 'gpus: [NVIDIA GeForce RTX 4090, 8x NVIDIA A40]',
  }),
  dataCenters: defineSetting({
    type: dataCenterListType(),
    default: [{ id: 'LOCAL-1' }],
    description:
      'The data centers in which pods and workers run. Each is served by one engine; the default engine is process, which runs processes on this machine. ' +
      'If no data center uses Docker and a daemon answers, DOCKER-1 is added. ' +
      'On Docker, runtime is another OCI runtime (runsc for gVisor, kata), requireUserNamespaces starts nothing unless the daemon remaps users, ' +
      'capabilities grants Linux capabilities by name in addition to the default set, and pids is the number of processes in one container (8192); see docs/isolation.md.',
    example:
      'dataCenters:\n  - { id: LOCAL-1 }\n  - { id: EU-1, name: Rack 7, region: EUROPE, engine: docker }\n  - { id: EU-2, engine: docker, runtime: runsc, capabilities: [SYS_PTRACE] }',
  }),
  'process.isolation': defineSetting({
    type: enumType(['auto', 'users', 'none']),
    default: 'auto',
    description:
      'How the process engine keeps accounts apart. auto: instances of every account but root run as a user of their own, in namespaces where the machine can; if Berth may not do that, they are refused. users: without namespaces. ' +
      'none: all instances run as the user that runs Berth and can read and change everything of each other and of Berth. See docs/isolation.md.',
  }),
  'process.users': defineSetting({
    type: textType(
      'a range of user ids such as 1900000000-1900065535',
      (value) => parseUserRange(value) !== undefined,
    ),
    default: '1900000000-1900065535',
    description:
      'The user ids of accounts on the process engine, one for each account and never two for one. Nothing else on the machine may use them. Change it in a container whose ids end at 65535.',
  }),
  'process.readablePaths': defineSetting({
    type: listOrWordType(['none'], 'folders'),
    default: 'none',
    description:
      'Folders of this machine that instances of all accounts may read on the process engine, beside the system and Berth itself: a Python outside /usr, or shared models.',
    example: 'process:\n  readablePaths: [/srv/models, /home/me/miniconda3]',
  }),
  docker: defineSetting({
    type: textType(
      'auto, off, or an address such as unix:///var/run/docker.sock',
      (value) =>
        value === 'auto' || value === 'off' || /^(unix|npipe|tcp|http|https|ssh):\/\/\S+$/.test(value),
    ),
    default: 'auto',
    description:
      'The address of the Docker daemon, or of Podman with the same API. auto: DOCKER_HOST, then the usual sockets, tried at the start and every few seconds until a daemon answers. off: Docker is not used.',
    example: 'docker: unix:///run/user/1000/podman/podman.sock',
  }),
  ecrEndpoint: defineSetting({
    type: urlType(),
    default: '',
    description:
      "The URL at which logins for delegated ECR registries are requested instead of Amazon's own, such as a private endpoint of your network. AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY hold the AWS identity.",
  }),
  clusterNetwork: defineSetting({
    type: textType('a range of IPv4 addresses such as 10.65.0.0/16, from /8 to /24', isSubnet),
    default: '10.65.0.0/16',
    description:
      'The address range for the networks of clusters on container engines, 256 addresses for each cluster. Change it if your own network uses these addresses.',
  }),
  containerNetwork: defineSetting({
    type: textType(
      'a range of IPv4 addresses such as 10.80.0.0/12, from /8 to /20',
      (value) => isSubnet(value) && Number(value.split('/')[1]) <= 20,
    ),
    default: '10.80.0.0/12',
    description:
      'The address range for the networks of accounts on container engines, 1,024 addresses for each account. Change it if your own network uses these addresses.',
  }),
  prices: defineSetting({
    type: pricesType(),
    default: noPrices,
    description:
      'Prices in US dollars: per hour for each GPU or CPU type, per GB and month for each kind of disk. The default price is 0. Set them to see in the usage what your machines cost; see docs/billing.md.',
    example:
      'prices:\n  gpu: { NVIDIA A40: 0.40 }\n  cpu: { cpu3c: 0.04 }\n  disk: { container: 0.10, networkVolume: 0.07 }',
  }),
};

export type SettingPath = keyof typeof settings;

/** The settings as a list. */
export const settingList: readonly { path: SettingPath; setting: Setting; variable: string | undefined }[] =
  Object.entries(settings).map(([path, entry]) => ({
    path: path as SettingPath,
    setting: entry,
    variable: environmentVariableOf(path, entry),
  }));
