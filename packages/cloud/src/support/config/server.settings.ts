import {
  byteSizeType,
  key32Type,
  optionalTextType,
  textType,
  urlType,
  wholeNumberType,
} from './setting-type.ts';
import { defineSetting } from './setting.ts';

/** With more, a server would spend more time on leases than on workers. */
const MAX_WORKER_SHARDS = 64;

/** Where Berth listens, and where its state is stored. */
export const serverSettings = {
  host: defineSetting({
    type: textType('a host name or an IP address', (value) => /^[A-Za-z0-9._:%-]+$/.test(value)),
    default: '127.0.0.1',
    flag: true,
    description:
      'The address to listen on. Loopback keeps Berth to this machine; 0.0.0.0 or :: opens it to ' +
      'the network.',
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
      'The data folder: the SQLite database, the root key, volumes and logs. Change it to put them ' +
      'on another disk.',
  }),
  diskReserve: defineSetting({
    type: byteSizeType(0),
    default: 64_000_000,
    description:
      'The size of a file in the data folder that keeps space free. When the disk is full, it is ' +
      'released step by step, so that Berth can delete, answer and start. 0: no file. On a small ' +
      'disk the file takes at most a tenth of the free space. If less space than this size is free ' +
      'beside the file, the pod or worker that writes most is ended.',
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
      'The URL of a PostgreSQL database for the state and the queue. Empty: SQLite in the data ' +
      'folder. Several Berth servers that work together need PostgreSQL.',
  }),
  databasePool: defineSetting({
    type: wholeNumberType(1, 1000),
    default: 10,
    description:
      'The maximum number of connections of this server to PostgreSQL; at least two are used. Two ' +
      'more connections are used to communicate with other servers. All servers together must stay ' +
      'below the limit of ' +
      'the database.',
  }),
  workerShards: defineSetting({
    type: wholeNumberType(1, MAX_WORKER_SHARDS),
    default: 1,
    description:
      'The number of shards that endpoints are divided into, so that several servers on one ' +
      'PostgreSQL share the work of managing workers. Each shard is managed by one server, and every ' +
      'server gets an equal share. 1: the leader manages all. All servers need the same number; to ' +
      'change it, stop all of them. A good value is two to four times the number of servers. It has ' +
      'no effect on SQLite. See docs/several-servers.md.',
  }),
  publicUrl: defineSetting({
    type: urlType(),
    default: '',
    description:
      'The URL at which clients reach Berth, if it differs from the one Berth listens on, for ' +
      'example behind a proxy or a load balancer. Empty: built from host and port.',
  }),
  workerUrl: defineSetting({
    type: urlType(),
    default: '',
    description:
      'The URL at which workers and pods reach Berth, if it differs from the public one. Empty: ' +
      'chosen by each engine.',
  }),
  internalUrl: defineSetting({
    type: urlType(),
    default: '',
    description:
      'The URL at which other Berth servers on the same PostgreSQL reach this one. Empty: the ' +
      'address it listens on, or the address of this machine if it listens on all addresses.',
  }),
  domain: defineSetting({
    type: optionalTextType('a host name such as berth.example.com', (value) =>
      /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(value) ? value.toLowerCase() : undefined,
    ),
    default: '',
    description:
      'A domain with wildcard DNS: every name *.<domain> resolves to this server. Load balancing ' +
      'endpoints are then also served at {endpoint_id}.<domain>, and pod ports at ' +
      '{pod_id}-{port}.<domain>. Empty: paths only.',
  }),
  rootKey: defineSetting({
    type: optionalTextType('at least 16 characters without spaces', (value) =>
      /^[!-~]{16,}$/.test(value) ? value : undefined,
    ),
    default: '',
    secret: true,
    description:
      'The API key of the root account, for installations that create their keys themselves. ' +
      'Empty: created at the first start and stored in the data folder.',
  }),
  masterKey: defineSetting({
    type: key32Type(),
    default: '',
    secret: true,
    description:
      'The key that encrypts secrets, registry passwords and environment values at rest. Empty: ' +
      'created at the first start and stored in the data folder. ' +
      'Set it to store the key apart from the data; all servers of one database need the same key. ' +
      'Without the key, encrypted values cannot be read.',
  }),
};
