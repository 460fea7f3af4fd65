import { isIPv4 } from 'node:net';
import { ACCOUNT, labelValue, ownershipLabels, podName } from './pod-labels.ts';

export interface NetworkPolicyInput {
  installation: string;
  account: string;
  /** Where pods reach Berth. */
  serverUrl: string;
  /** The namespace of the pods of Berth, where this server is one of them. */
  berthNamespace?: string | undefined;
  /** The port at which the pods of Berth listen. */
  berthPort?: number | undefined;
}

/**
 * Not the internet: the cluster, its machines, and metadata services, which hand out credentials of the
 * machines.
 */
const PRIVATE_RANGES = ['10.0.0.0/8', '100.64.0.0/10', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16'];
const DNS_PORT = 53;
const NAMESPACE_NAME = 'kubernetes.io/metadata.name';

/**
 * The pods of one account reach each other, DNS, the internet and Berth; only they and Berth reach them.
 * Traffic from the machines of the cluster is not filtered, as policies never do.
 */
export function networkPolicy({
  installation,
  account,
  serverUrl,
  berthNamespace,
  berthPort,
}: NetworkPolicyInput): {
  metadata: { name: string; labels: Record<string, string> };
  [field: string]: unknown;
} {
  const own = { podSelector: { matchLabels: { [ACCOUNT]: labelValue(account) } } };
  const servers = [serverAddress(serverUrl), berthPods(serverUrl, berthNamespace, berthPort)].filter(
    (server) => server !== undefined,
  );
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: {
      name: podName(installation, `account-${account}`),
      labels: { ...ownershipLabels(installation), [ACCOUNT]: labelValue(account) },
    },
    spec: {
      podSelector: own.podSelector,
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from: [own, ...servers.map(({ peer }) => peer)] }],
      egress: [
        { to: [own] },
        {
          ports: [
            { protocol: 'UDP', port: DNS_PORT },
            { protocol: 'TCP', port: DNS_PORT },
          ],
        },
        { to: [{ ipBlock: { cidr: '0.0.0.0/0', except: PRIVATE_RANGES } }] },
        ...servers.map(({ peer, port }) => ({
          to: [peer],
          ...(port !== undefined && { ports: [{ protocol: 'TCP', port }] }),
        })),
      ],
    },
  };
}

/** Berth, as pods see it. */
interface ServerPeer {
  peer: unknown;
  port: number | undefined;
}

/** A server that is no pod of the cluster is known by its address. */
function serverAddress(url: string): ServerPeer | undefined {
  if (!URL.canParse(url)) return undefined;
  const { hostname, port, protocol } = new URL(url);
  if (!isIPv4(hostname)) return undefined;
  return {
    peer: { ipBlock: { cidr: `${hostname}/32` } },
    port: Number(port) || (protocol === 'https:' ? 443 : 80),
  };
}

/**
 * The pods of Berth in its own namespace: a label alone anybody may give to a pod. Where that is not known, and
 * Berth has no address, they are in some namespace.
 */
function berthPods(
  url: string,
  namespace: string | undefined,
  port: number | undefined,
): ServerPeer | undefined {
  if (namespace === undefined && serverAddress(url) !== undefined) return undefined;
  return {
    peer: {
      namespaceSelector: namespace === undefined ? {} : { matchLabels: { [NAMESPACE_NAME]: namespace } },
      podSelector: { matchLabels: { 'app.kubernetes.io/name': 'berth' } },
    },
    port,
  };
}
