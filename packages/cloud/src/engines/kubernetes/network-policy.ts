import { isIPv4 } from 'node:net';
import { ACCOUNT, labelValue, ownershipLabels, podName } from './pod-labels.ts';

export interface NetworkPolicyInput {
  installation: string;
  account: string;
  /** Where pods reach Berth. */
  serverUrl: string;
}

/**
 * Not the internet: the cluster, its machines, and metadata services, which hand out credentials of the
 * machines.
 */
const PRIVATE_RANGES = ['10.0.0.0/8', '100.64.0.0/10', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16'];
const DNS_PORT = 53;
/** The pods of Berth itself, in whatever namespace. */
const BERTH = { namespaceSelector: {}, podSelector: { matchLabels: { 'app.kubernetes.io/name': 'berth' } } };

/**
 * The pods of one account reach each other, DNS, the internet and Berth; only they and Berth reach them.
 * Traffic from the machines of the cluster is not filtered, as policies never do.
 */
export function networkPolicy({ installation, account, serverUrl }: NetworkPolicyInput): {
  metadata: { name: string; labels: Record<string, string> };
  [field: string]: unknown;
} {
  const own = { podSelector: { matchLabels: { [ACCOUNT]: labelValue(account) } } };
  const server = serverPeer(serverUrl);
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
      ingress: [{ from: [own, BERTH, ...(server === undefined ? [] : [server.peer])] }],
      egress: [
        { to: [own, BERTH] },
        {
          ports: [
            { protocol: 'UDP', port: DNS_PORT },
            { protocol: 'TCP', port: DNS_PORT },
          ],
        },
        { to: [{ ipBlock: { cidr: '0.0.0.0/0', except: PRIVATE_RANGES } }] },
        ...(server === undefined
          ? []
          : [{ to: [server.peer], ports: [{ protocol: 'TCP', port: server.port }] }]),
      ],
    },
  };
}

/** A server that is no pod of the cluster is known by its address. */
function serverPeer(url: string): { peer: unknown; port: number } | undefined {
  if (!URL.canParse(url)) return undefined;
  const { hostname, port, protocol } = new URL(url);
  if (!isIPv4(hostname)) return undefined;
  return {
    peer: { ipBlock: { cidr: `${hostname}/32` } },
    port: Number(port) || (protocol === 'https:' ? 443 : 80),
  };
}
