import { formatBytes } from '../../support/byte-size.ts';
import type { Command } from '../command-definition.ts';
import { fieldOf, resourceCommands } from './resource-definition.ts';
import type { ResourceDefinition } from './resource-definition.ts';

const ENDPOINTS: ResourceDefinition = {
  noun: 'endpoint',
  plural: 'endpoints',
  path: '/serverless',
  columns: {
    ID: 'id',
    NAME: 'name',
    TYPE: (row) => (row['type'] === 'QUEUE' ? 'queue' : 'lb'),
    IMAGE: 'image',
    MIN: 'workers.min',
    MAX: 'workers.max',
  },
  verbs: ['ls', 'get', 'create', 'update'],
  fieldHelp:
    'For example: --set name=web --set type=QUEUE --set image=ghcr.io/me/worker:1 (or templateId=…) ' +
    '--set \'cpu=[{"id": "cpu3c", "vcpuCount": 2}]\' --set \'scaling={"type": "QUEUE_DELAY", ' +
    '"queueDelay": 4}\' --set workers.max=3 --set env.MODEL=small. A change of the container is a new ' +
    'release. "berth deploy" needs less.',
};

/**
 * What the command line manages by the same five verbs. Commands of the same nouns that do more are in
 * commands/.
 */
const RESOURCES: readonly ResourceDefinition[] = [
  ENDPOINTS,
  {
    noun: 'template',
    plural: 'templates',
    path: '/templates',
    columns: { ID: 'id', NAME: 'name', IMAGE: 'image', DISK: 'disk', PUBLIC: 'public' },
    verbs: ['ls', 'get', 'create', 'update', 'rm'],
    fieldHelp: 'For example: --set name=web --set image=ghcr.io/me/worker:1 --set env.MODEL=small.',
  },
  {
    noun: 'secret',
    plural: 'secrets',
    path: '/account/secrets',
    columns: {
      ID: 'id',
      NAME: 'name',
      DESCRIPTION: 'description',
      'VALUE SET': (row) => row['valueLastUpdatedAt'] ?? row['createdAt'],
    },
    verbs: ['ls', 'get', 'create', 'update', 'rm'],
    fieldHelp:
      'For example: --set name=token --set value=@- reads the value from the standard input, so that ' +
      'it is in no history. Values are never shown.',
  },
  {
    noun: 'registry',
    plural: 'registries',
    path: '/registries',
    columns: { ID: 'id', NAME: 'name' },
    verbs: ['ls', 'get', 'create', 'rm'],
    fieldHelp: 'For example: --set name=hub --set username=me --set password=@-.',
  },
  {
    noun: 'delegation',
    plural: 'delegations',
    path: '/registries/delegations',
    columns: {
      ID: 'id',
      NAME: 'name',
      REPOSITORY: 'repository',
      REGION: 'awsRegion',
      URI: 'dockerRegistryUri',
    },
    verbs: ['ls', 'create', 'rm'],
    fieldHelp: 'For example: --set resource=arn:aws:ecr:eu-central-1:123456789012:repository/worker.',
    listSummary: 'List the ECR repositories that need no saved credentials.',
  },
  {
    noun: 'pod',
    plural: 'pods',
    path: '/pods',
    listQuery: '?includeClusterPods=true',
    columns: {},
    verbs: ['get', 'update'],
    fieldHelp:
      'For example: --set name=lab --set env.MODEL=small. What is built into its container restarts a ' +
      'running pod.',
  },
  {
    noun: 'key',
    plural: 'keys',
    path: '/account/api-keys',
    listName: 'apiKeys',
    columns: {},
    verbs: ['update'],
    fieldHelp: 'For example: --set enabled=false, or --set expiresAt=2027-01-31T00:00:00Z.',
  },
  {
    noun: 'session',
    plural: 'sessions',
    path: '/sessions',
    columns: {
      ID: 'id',
      KEY: 'keyId',
      BROWSER: 'userAgent',
      'LAST USED': 'lastUsedAt',
      EXPIRES: 'expiresAt',
    },
    verbs: ['ls', 'rm'],
    listSummary: 'List who is signed in to the console.',
    removeSummary: 'End a session of the console.',
  },
  {
    noun: 'cluster',
    plural: 'clusters',
    path: '/clusters',
    columns: {
      ID: 'id',
      NAME: 'name',
      TYPE: 'type',
      PODS: 'pods.total',
      STATUS: 'pods.byStatus',
      GPU: 'compute.gpuTypeId',
      'GPUS/POD': 'compute.gpuCountPerPod',
      'DATA CENTER': 'dataCenterId',
    },
    verbs: ['ls', 'get', 'create', 'update', 'rm'],
    fieldHelp: 'See docs/clusters.md for the fields; --file takes them as YAML.',
  },
  {
    noun: 'gpu',
    plural: 'gpus',
    path: '/catalog/gpus',
    listQuery: '?include=AVAILABILITY&product=POD',
    columns: {
      ID: 'id',
      // Before the others, which a narrow terminal leaves out.
      KIND: (row) => (row['virtual'] === true ? 'virtual' : row['availability'] === 'NONE' ? '-' : 'real'),
      AVAILABILITY: 'availability',
      MEMORY: (row) => `${String(row['memory'])} GB`,
      POOL: 'pool',
      '$/HOUR': 'price.secure',
    },
    verbs: ['ls', 'get'],
    listSummary: 'List the GPU types, and which of them are here.',
  },
  {
    noun: 'cpu',
    plural: 'cpus',
    path: '/catalog/cpus',
    columns: {
      ID: 'id',
      NAME: 'name',
      VCPUS: (row) => `${String(fieldOf(row, 'vcpu.min'))} to ${String(fieldOf(row, 'vcpu.max'))}`,
      'GB/VCPU': 'ramGbPerVcpu',
      '$/VCPU/HOUR': 'price.securePerVcpu',
    },
    verbs: ['ls', 'get'],
    listSummary: 'List the kinds of CPU.',
  },
  {
    noun: 'datacenter',
    plural: 'data centers',
    path: '/catalog/datacenters',
    listName: 'dataCenters',
    columns: {
      ID: 'id',
      NAME: 'name',
      REGION: 'region',
      ISOLATION: 'isolation',
      VOLUMES: 'networkVolumeTypes',
    },
    verbs: ['ls', 'get'],
    listSummary: 'List the data centers.',
  },
  {
    noun: 'image',
    plural: 'images',
    path: '/images',
    columns: {
      IMAGE: 'image',
      NAME: 'name',
      FILES: 'files',
      SIZE: (row) => formatBytes(Number(row['size'])),
      'USED BY': 'endpoints',
      UPLOADED: 'createdAt',
    },
    verbs: ['ls'],
    listSummary: 'List the uploaded folders, and which endpoints run them.',
  },
];

export function resourceCommand(name: string): Command {
  const found = RESOURCES.flatMap(resourceCommands).find((command) => command.name === name);
  if (found === undefined) throw new Error(`no resource has the command ${name}`);
  return found;
}
