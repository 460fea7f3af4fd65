import type { KubernetesClient } from './client/kubernetes-client.ts';
import { isConflict } from './client/kubernetes.errors.ts';
import { ListWatch, type KubernetesObject } from './client/list-watch.ts';
import type { ClusterSettings } from './kubernetes-options.ts';
import { networkPolicy } from './network-policy.ts';
import { INSTALLATION, labelValue, podName } from './pod-labels.ts';

export interface AccountPoliciesDeps {
  client: KubernetesClient;
  namespace: string;
  installation: string;
  settings: ClusterSettings;
  /** Those that have pods. */
  accounts: () => Iterable<string>;
  /** Only the leading server writes. */
  isLeading: () => boolean;
  onProblem: (what: string, error: unknown) => void;
}

/** The network policies of accounts: each is written before the first pod, and again when somebody deletes it. */
export class AccountPolicies {
  readonly #deps: AccountPoliciesDeps;
  /** Accounts whose policy is up to date, for the URL that it was made for. */
  readonly #written = new Map<string, string>();
  #watch: ListWatch<KubernetesObject> | undefined;
  /** Where pods reach Berth. */
  serverUrl = '';
  /** The port at which this server listens; those that are pods of the cluster listen at the same one. */
  listenPort: number | undefined;

  constructor(deps: AccountPoliciesDeps) {
    this.#deps = deps;
  }

  async ensure(account: string): Promise<void> {
    const { client, installation, settings } = this.#deps;
    if (!settings.networkPolicies || this.#written.get(account) === this.serverUrl) return;
    const { serverUrl } = this;
    const policy = networkPolicy({
      installation,
      account,
      serverUrl,
      // A kubeconfig names the namespace of its context, a service account that of the server.
      berthNamespace: settings.kubeconfig === undefined ? await client.namespace() : undefined,
      berthPort: this.listenPort,
    });
    try {
      await client.create(this.#path, policy);
    } catch (error) {
      if (!isConflict(error)) throw error;
      await client.merge(`${this.#path}/${policy.metadata.name}`, policy);
    }
    this.#written.set(account, serverUrl);
  }

  listen(): void {
    const { client, installation, settings, onProblem } = this.#deps;
    if (!settings.networkPolicies) return;
    this.#watch ??= new ListWatch({
      client,
      path: this.#path,
      query: { labelSelector: `${INSTALLATION}=${labelValue(installation)}` },
      onList: (policies) => {
        const present = new Set(policies.map(({ metadata }) => metadata.name));
        return this.#restore((name) => !present.has(name));
      },
      onChange: async (type, { metadata }) => {
        if (type === 'DELETED') await this.#restore((name) => name === metadata.name);
      },
      onProblem,
    });
  }

  async close(): Promise<void> {
    await this.#watch?.close();
  }

  async #restore(isMissing: (name: string) => boolean): Promise<void> {
    const { accounts, installation, isLeading } = this.#deps;
    const inUse = new Set(accounts());
    for (const account of new Set([...inUse, ...this.#written.keys()])) {
      if (!isMissing(podName(installation, `account-${account}`))) continue;
      this.#written.delete(account);
      if (inUse.has(account) && isLeading()) await this.ensure(account);
    }
  }

  get #path(): string {
    return `/apis/networking.k8s.io/v1/namespaces/${this.#deps.namespace}/networkpolicies`;
  }
}
