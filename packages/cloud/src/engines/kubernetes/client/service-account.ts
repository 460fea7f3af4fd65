import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BerthError } from '../../../support/errors.ts';
import type { ClusterAccess, ClusterCredentials } from './cluster-access.ts';

/** Where Kubernetes puts the token of a pod's service account. */
const FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';
/** The kubelet replaces the token before it expires. */
const TTL_MS = 60_000;

/** The cluster that this server itself runs in. */
export async function readServiceAccount(
  env: NodeJS.ProcessEnv = process.env,
  folder = FOLDER,
): Promise<ClusterAccess> {
  const host = env['KUBERNETES_SERVICE_HOST'];
  if (!host)
    throw new BerthError(
      'unavailable',
      'no kubeconfig is given, and this server does not run in a cluster; set kubeconfig (BERTH_KUBECONFIG)',
    );
  const read = (file: string): Promise<string> => readFile(join(folder, file), 'utf8');
  const namespace = (await read('namespace').catch(() => '')).trim();
  let cached: { credentials: ClusterCredentials; until: number } | undefined;
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${env['KUBERNETES_SERVICE_PORT'] ?? '443'}`,
    namespace: namespace === '' ? undefined : namespace,
    forgetCredentials: () => (cached = undefined),
    credentials: async () => {
      if (cached === undefined || Date.now() > cached.until) {
        const [ca, token] = await Promise.all([read('ca.crt'), read('token')]).catch((error: unknown) => {
          throw new BerthError(
            'unavailable',
            `the service account cannot be read: ${(error as Error).message}`,
          );
        });
        cached = {
          credentials: { authorization: `Bearer ${token.trim()}`, tls: { ca } },
          until: Date.now() + TTL_MS,
        };
      }
      return cached.credentials;
    },
  };
}
