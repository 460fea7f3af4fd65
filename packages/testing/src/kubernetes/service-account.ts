import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { readKubeconfig } from '../../../cloud/src/engines/kubernetes/client/kubeconfig.ts';
import { KubernetesClient } from '../../../cloud/src/engines/kubernetes/client/kubernetes-client.ts';
import { isConflict } from '../../../cloud/src/engines/kubernetes/client/kubernetes.errors.ts';
import { waitFor } from '../wait-for.ts';

const ROLE_FILE = resolve(import.meta.dirname, '../../../../deploy/kubernetes/role.yaml');
const RBAC = '/apis/rbac.authorization.k8s.io/v1';

interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
}

interface RoleObject {
  kind: string;
  metadata: { name: string; namespace?: string };
  rules?: Rule[];
  subjects?: { namespace?: string }[];
}

/** One verb on one resource. */
export interface Permission {
  kind: 'Role' | 'ClusterRole';
  apiGroup: string;
  resource: string;
  verb: string;
}

/**
 * The service account of deploy/kubernetes/role.yaml in a namespace, with exactly the rights of that file.
 */
export class BerthServiceAccount {
  readonly #adminKubeconfig: string;
  readonly #admin: KubernetesClient;
  readonly #namespace: string;

  constructor(adminKubeconfig: string, namespace: string) {
    this.#adminKubeconfig = adminKubeconfig;
    this.#admin = new KubernetesClient(() => readKubeconfig(adminKubeconfig));
    this.#namespace = namespace;
  }

  /** Creates the namespace and all of the file in it, and returns the path of a kubeconfig with its token. */
  async create(folder: string): Promise<string> {
    await this.#create('/api/v1/namespaces', { kind: 'Namespace', metadata: { name: this.#namespace } });
    for (const object of this.#objects())
      await this.#create(this.#pathOf(object), { apiVersion: versionOf(object), ...object });
    const { status } = await this.#admin.create<{ status: { token: string } }>(
      `/api/v1/namespaces/${this.#namespace}/serviceaccounts/berth/token`,
      { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 7200 } },
    );
    const config = parse(readFileSync(this.#adminKubeconfig, 'utf8')) as {
      users: { name: string; user: object }[];
    };
    for (const user of config.users) user.user = { token: status.token };
    const path = join(folder, 'kubeconfig');
    writeFileSync(path, JSON.stringify(config), { mode: 0o600 });
    // A role counts a moment after its creation.
    const client = new KubernetesClient(() => readKubeconfig(path));
    await waitFor('the role counts', () =>
      client.get(`/api/v1/namespaces/${this.#namespace}/pods`).then(
        () => true,
        () => false,
      ),
    );
    client.close();
    return path;
  }

  permissions(): Permission[] {
    return this.#objects().flatMap(({ kind, rules = [] }) =>
      rules.flatMap(({ apiGroups, resources, verbs }) =>
        apiGroups.flatMap((apiGroup) =>
          resources.flatMap((resource) =>
            verbs.map((verb) => ({ kind: kind as Permission['kind'], apiGroup, resource, verb })),
          ),
        ),
      ),
    );
  }

  /** Runs `work` while the account lacks this permission. */
  async without(permission: Permission, work: () => Promise<void>): Promise<void> {
    await this.#setRules(permission);
    await this.#waitForAccess(permission, false);
    try {
      await work();
    } finally {
      await this.#setRules(undefined);
      await this.#waitForAccess(permission, true);
    }
  }

  async close(): Promise<void> {
    await this.#admin.delete(`/api/v1/namespaces/${this.#namespace}`);
    for (const kind of ['clusterroles', 'clusterrolebindings'])
      await this.#admin.delete(`${RBAC}/${kind}/${this.#namespace}-nodes`);
    this.#admin.close();
  }

  /** What belongs to the whole cluster has a name of its own for each namespace. */
  #objects(): RoleObject[] {
    const text = readFileSync(ROLE_FILE, 'utf8').replaceAll('berth-nodes', `${this.#namespace}-nodes`);
    return parseAllDocuments(text).map((document) => {
      const object = document.toJS() as RoleObject;
      for (const subject of object.subjects ?? []) subject.namespace = this.#namespace;
      return object;
    });
  }

  async #setRules(missing: Permission | undefined): Promise<void> {
    for (const object of this.#objects()) {
      if (object.rules === undefined) continue;
      const rules = object.rules.flatMap((rule) => {
        const verbs = rule.verbs.filter(
          (verb) =>
            missing === undefined ||
            object.kind !== missing.kind ||
            !rule.apiGroups.includes(missing.apiGroup) ||
            !rule.resources.includes(missing.resource) ||
            verb !== missing.verb,
        );
        return verbs.length === 0 ? [] : [{ ...rule, verbs }];
      });
      await this.#admin.merge(`${this.#pathOf(object)}/${object.metadata.name}`, { rules });
    }
  }

  async #waitForAccess({ kind, apiGroup, resource, verb }: Permission, isAllowed: boolean): Promise<void> {
    const [name, subresource] = resource.split('/');
    await waitFor(`${verb} ${resource} is ${isAllowed ? 'allowed' : 'forbidden'}`, async () => {
      const { status } = await this.#admin.create<{ status: { allowed: boolean } }>(
        '/apis/authorization.k8s.io/v1/subjectaccessreviews',
        {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SubjectAccessReview',
          spec: {
            user: `system:serviceaccount:${this.#namespace}:berth`,
            resourceAttributes: {
              ...(kind === 'Role' && { namespace: this.#namespace }),
              group: apiGroup,
              resource: name,
              subresource,
              verb,
            },
          },
        },
      );
      return status.allowed === isAllowed;
    });
  }

  async #create(path: string, object: object): Promise<void> {
    await this.#admin.create(path, object).catch((error: unknown) => {
      if (!isConflict(error)) throw error;
    });
  }

  #pathOf({ kind }: RoleObject): string {
    const plural = `${kind.toLowerCase()}s`;
    if (kind === 'ServiceAccount') return `/api/v1/namespaces/${this.#namespace}/${plural}`;
    return kind.startsWith('Cluster')
      ? `${RBAC}/${plural}`
      : `${RBAC}/namespaces/${this.#namespace}/${plural}`;
  }
}

function versionOf({ kind }: RoleObject): string {
  return kind === 'ServiceAccount' ? 'v1' : 'rbac.authorization.k8s.io/v1';
}
