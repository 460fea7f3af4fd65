import type { RegistryDelegation } from '../../domain/records.ts';
import type { Store } from '../../store/store.ts';
import { dockerRegistryUri } from './registry-delegations.ts';
import type { EcrLogin } from './ecr-login.ts';
import type { RegistryCredentials } from './registries.ts';

/** Finds the credentials for pulling an image, for pods, clusters and workers. */
export class PullCredentials {
  readonly #store: Pick<Store, 'registries' | 'delegations'>;
  readonly #ecr: Pick<EcrLogin, 'credentialsFor'>;

  constructor(store: Pick<Store, 'registries' | 'delegations'>, ecr: Pick<EcrLogin, 'credentialsFor'>) {
    this.#store = store;
    this.#ecr = ecr;
  }

  /** Named credentials come first, then a delegation of the account that covers the image. */
  async find(
    accountId: string,
    registryId: string | null,
    image: string,
  ): Promise<RegistryCredentials | undefined> {
    if (registryId !== null) {
      const saved = await this.#store.registries.find(accountId, registryId);
      return saved === undefined ? undefined : { username: saved.username, password: saved.password };
    }
    if (!isEcrImage(image)) return undefined;
    const delegation = findCoveringDelegation(await this.#store.delegations.list(accountId), image);
    return delegation === undefined ? undefined : this.#ecr.credentialsFor(delegation);
  }
}

/** The newest delegation of the image's repository. Its tag must match; `latest` matches every tag. */
function findCoveringDelegation(
  delegations: readonly RegistryDelegation[],
  image: string,
): RegistryDelegation | undefined {
  const [named = ''] = image.split('@');
  const slash = named.indexOf('/');
  const [host, path] = [named.slice(0, slash), named.slice(slash + 1)];
  const colon = path.lastIndexOf(':');
  const [repository, tag] = colon === -1 ? [path, 'latest'] : [path.slice(0, colon), path.slice(colon + 1)];
  return delegations.find(
    (one) =>
      dockerRegistryUri(one) === host &&
      one.repository === repository &&
      (one.tag === 'latest' || one.tag === tag),
  );
}

/** Most images are not from ECR and need no lookup in the store. */
function isEcrImage(image: string): boolean {
  return /^\d+\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?\//.test(image);
}
