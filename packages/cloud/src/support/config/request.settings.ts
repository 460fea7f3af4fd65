import { type OperationLimit, operationLimitType } from './operation-limit.setting.ts';
import { booleanType, optionalTextType, textType, urlType, wholeNumberType } from './setting-type.ts';
import { type Setting, defineSetting } from './setting.ts';

/** The rate limit of one operation of the job API, for each account and endpoint. */
function jobLimit(operation: string, per10s: number, concurrent: number): Setting<OperationLimit | 'off'> {
  return defineSetting({
    type: operationLimitType(),
    default: { per10s, concurrent },
    description:
      `How many ${operation} calls one account may make to one endpoint: in ten seconds, and at the ` +
      'same time. With many workers, the limit for ten seconds rises to 100 per worker.',
  });
}

/** How requests are served, and how many. */
export const requestSettings = {
  stopTimeout: defineSetting({
    type: wholeNumberType(0, 3600),
    default: 10,
    description:
      'How many seconds Berth waits for running requests when it stops. Raise it if long ' +
      'synchronous calls must survive a restart.',
  }),
  maxConnections: defineSetting({
    type: wholeNumberType(0),
    default: 0,
    description:
      'How many connections of clients may be open at a time. Further connections are answered with ' +
      '503 and closed. 0: 60 % of the limit of open files (ulimit -n); the rest is for files, the ' +
      'database and workers.',
  }),
  maxConnectionsPerAccount: defineSetting({
    type: wholeNumberType(0),
    default: 0,
    description:
      'How many of these connections one account may have; the root account has no such limit. A ' +
      'connection counts for the account whose key was last used on it; a connection to a port of a ' +
      'pod counts for the owner of the pod. Requests on further connections are answered with 429, ' +
      'and the connection is closed. 0: half of maxConnections.',
  }),
  fastPath: defineSetting({
    type: booleanType(['on', 'off']),
    default: true,
    description:
      "Whether small, plain requests to the job API are read by Berth's own HTTP parser instead of Node's. " +
      'It takes about half of the CPU time; all other requests go to Node. Turn it off to rule it ' +
      'out as the cause of a fault.',
  }),
  accelerate: defineSetting({
    type: booleanType(['on', 'off']),
    default: false,
    description:
      'Whether workers with the public Python SDK get the fast worker channel, on endpoints that do ' +
      'not set it themselves (`accelerate` in REST v2). See docs/python.md.',
  }),
  takeAhead: defineSetting({
    type: booleanType(['on', 'off']),
    default: true,
    description:
      'Whether one answer to job-take may carry several short jobs, for workers with the public ' +
      'Python SDK. That SDK sleeps for a second between its requests, so with one job per answer it ' +
      'runs one job per second. See docs/python.md.',
  }),
  'images.keepDays': defineSetting({
    type: wholeNumberType(0, 3650),
    default: 30,
    description:
      'How many days unused images are kept: a deployed folder after its last upload, and a ' +
      'container image that Berth pulled after its last start. An image is unused if no endpoint, ' +
      'none of its last ten releases, no template and no pod refers to it. 0: for ever.',
  }),
  'images.bucket': defineSetting({
    type: optionalTextType('an S3 bucket such as s3://bucket/prefix', (value) =>
      /^s3:\/\/[^/\0]+[^\0]*$/.test(value) ? value : undefined,
    ),
    default: '',
    description:
      'Where several servers keep the files of deployed folders, their Python environments and flash builds: ' +
      's3://bucket/prefix, with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment of each. ' +
      'Empty: in PostgreSQL. ' +
      'Existing files are not moved.',
  }),
  'images.s3Endpoint': defineSetting({
    type: urlType(),
    default: '',
    description: 'The address of the S3 service of images.bucket, if it is not AWS.',
  }),
  'images.s3Region': defineSetting({
    type: textType('the name of a region', (value) => /^[A-Za-z0-9-]+$/.test(value)),
    default: 'us-east-1',
    description: 'The region of images.bucket.',
  }),
  'pythonEnvironments.keepDays': defineSetting({
    type: wholeNumberType(0, 3650),
    default: 14,
    description:
      'How many days a Python environment of a deployed folder is kept after its last use, if no ' +
      'endpoint runs the folder any more. See docs/python.md.',
  }),
  'pythonEnvironments.maxGb': defineSetting({
    type: wholeNumberType(1),
    default: 50,
    description:
      'How many GB all Python environments may have together. Above that, the least recently used ' +
      'are deleted; they are built again when they are needed. An environment that a worker or pod ' +
      'uses is kept.',
  }),
  'pythonEnvironments.installUv': defineSetting({
    type: booleanType(['on', 'off']),
    default: true,
    description:
      'Whether Berth installs uv for its Python environments if it is not on PATH: from the package ' +
      'index of pip, at the first build. Off: pip installs the packages, which takes many times as ' +
      'long.',
  }),
  rateLimits: defineSetting({
    type: booleanType(['on', 'off']),
    default: true,
    description:
      'Whether rate limits apply. Turn them off for load tests, or if a proxy in front of Berth ' +
      'limits requests.',
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
};
