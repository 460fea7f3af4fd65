import type { ClusterAccess } from './cluster-access.ts';
import { readKubeconfig } from './kubeconfig.ts';
import { readServiceAccount } from './service-account.ts';

/**
 * Reads the kubeconfig, or else the service account, with the first request. A file that cannot be read is
 * tried again.
 */
export function lazyClusterAccess({
  kubeconfig,
  context,
}: {
  kubeconfig?: string;
  context?: string;
}): () => Promise<ClusterAccess> {
  let access: Promise<ClusterAccess> | undefined;
  return () => {
    const reading = (access ??=
      kubeconfig === undefined ? readServiceAccount() : readKubeconfig(kubeconfig, context));
    reading.catch(() => {
      if (access === reading) access = undefined;
    });
    return reading;
  };
}
