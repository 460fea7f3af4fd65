import { createHash } from 'node:crypto';
import type { ObjectMetadata } from './kubernetes-objects.ts';

/** Labels select; annotations hold what a label cannot. */
export const INSTALLATION = 'berth/installation';
const INSTANCE = 'berth/instance';
export const ACCOUNT = 'berth/account';
export const CLUSTER = 'berth/cluster';
export const DATA_CENTER = 'berth/data-center';
const DETAILS = 'berth/details';

const LABEL_VALUE = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
/** With the prefix, a name stays below the 63 characters of a host name. */
const PLAIN_NAME = /^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/;

/** What Berth needs to know of an instance and the API server does not store otherwise. */
export interface InstanceDetails {
  id: string;
  image: string;
  labels: Readonly<Record<string, string>>;
  ports: readonly number[];
  memoryInGb: number;
  gpus: { typeId: string; count: number } | null;
}

export function podName(installation: string, id: string): string {
  const prefix = `berth-${hash(installation, 6)}`;
  if (PLAIN_NAME.test(id)) return `${prefix}-${id}`;
  const readable = id
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 24)
    .replace(/^-+|-+$/g, '');
  return `${prefix}-${readable === '' ? '' : `${readable}-`}${hash(id, 10)}`;
}

/** Values that a label cannot have are hashed. */
export function labelValue(value: string): string {
  return LABEL_VALUE.test(value) ? value : `h-${hash(value, 20)}`;
}

export function ownershipLabels(installation: string): Record<string, string> {
  return { [INSTALLATION]: labelValue(installation), 'app.kubernetes.io/managed-by': 'berth' };
}

/** Selects the objects of one data center of one installation. */
export function ownershipSelector(installation: string, dataCenterId: string): string {
  return `${INSTALLATION}=${labelValue(installation)},${DATA_CENTER}=${labelValue(dataCenterId)}`;
}

export function instanceMetadata(
  installation: string,
  dataCenterId: string,
  details: InstanceDetails,
): { labels: Record<string, string>; annotations: Record<string, string> } {
  const { account, cluster } = details.labels;
  return {
    labels: {
      ...ownershipLabels(installation),
      [DATA_CENTER]: labelValue(dataCenterId),
      [INSTANCE]: labelValue(details.id),
      ...(account !== undefined && { [ACCOUNT]: labelValue(account) }),
      ...(cluster !== undefined && { [CLUSTER]: labelValue(cluster) }),
    },
    annotations: { [DETAILS]: JSON.stringify(details) },
  };
}

/** The annotation that `readDetails` reads. */
export function detailsAnnotation({ annotations }: ObjectMetadata): Record<string, string> {
  const text = annotations?.[DETAILS];
  return text === undefined ? {} : { [DETAILS]: text };
}

/** Undefined for an object that Berth did not create. */
export function readDetails({ annotations }: ObjectMetadata): InstanceDetails | undefined {
  const text = annotations?.[DETAILS];
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as InstanceDetails;
  } catch {
    return undefined;
  }
}

function hash(text: string, length: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, length);
}
