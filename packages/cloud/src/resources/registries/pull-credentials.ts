import type { RegistryDelegation } from '../../store/records.ts';
import type { Store } from '../../store/store.ts';
import { dockerRegistryUri } from './delegations.ts';
import type { EcrLogin } from './ecr-login.ts';
import type { Credentials } from './registries.ts';

/** What an image is pulled with, for pods, clusters and workers alike. */
export class PullCredentials {
  readonly #store: Pick<Store, 'registries' | 'delegations'>;
  readonly #ecr: Pick<EcrLogin, 'of'>;

  constructor(store: Pick<Store, 'registries' | 'delegations'>, ecr: Pick<EcrLogin, 'of'>) {
    this.#store = store;
    this.#ecr = ecr;
  }

  /** Saved credentials that are named go first; else a delegation of the account that covers the image. */
  async of(accountId: string, registryId: string | null, image: string): Promise<Credentials | undefined> {
    if (registryId !== null) {
      const saved = await this.#store.registries.find(accountId, registryId);
      return saved === undefined ? undefined : { username: saved.username, password: saved.password };
    }
    if (!isOfEcr(image)) return undefined;
    const delegation = covering(await this.#store.delegations.list(accountId), image);
    return delegation === undefined ? undefined : this.#ecr.of(delegation);
  }
}

/** The newest delegation whose repository the image is from. A tag that was named counts; `latest` stands for every tag. */
export function covering(
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

/** Most images are not, and need no look into the store. */
function isOfEcr(image: string): boolean {
  return /^\d+\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?\//.test(image);
}
