import type { KubernetesClient } from './client/kubernetes-client.ts';
import { isConflict, isNotFound } from './client/kubernetes.errors.ts';
import type { PodObject } from './kubernetes-objects.ts';
import type { ClusterSettings } from './kubernetes-options.ts';
import type { InstanceManifests } from './pod-manifest.ts';

export interface PodSecretsDeps {
  client: KubernetesClient;
  settings: Pick<ClusterSettings, 'namespace'>;
}

type PodManifests = Pick<InstanceManifests, 'environment' | 'pullSecret'>;

function secretsOf({ environment, pullSecret }: PodManifests): Record<string, unknown>[] {
  return [environment, ...(pullSecret === undefined ? [] : [pullSecret])];
}

function secretPath(secret: Record<string, unknown>, { namespace }: PodSecretsDeps['settings']): string {
  return `/api/v1/namespaces/${namespace}/secrets/${(secret['metadata'] as { name: string }).name}`;
}

/** Before the pod, which does not start without them. One that an earlier start left is replaced. */
export async function createSecrets(manifests: PodManifests, deps: PodSecretsDeps): Promise<void> {
  const { client, settings } = deps;
  const create = (secret: Record<string, unknown>): Promise<unknown> =>
    client.create(`/api/v1/namespaces/${settings.namespace}/secrets`, secret);
  await Promise.all(
    secretsOf(manifests).map(async (secret) => {
      try {
        await create(secret);
      } catch (error) {
        if (!isConflict(error)) throw error;
        await client.delete(secretPath(secret, settings)).catch(ignoreNotFound);
        await create(secret);
      }
    }),
  );
}

/** The cluster deletes the secrets with the pod, also while Berth is down. */
export async function adoptSecrets(
  manifests: PodManifests,
  { metadata: { name, uid } }: PodObject,
  { client, settings }: PodSecretsDeps,
): Promise<void> {
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name, uid }];
  await Promise.all(
    secretsOf(manifests).map((secret) =>
      client.merge(secretPath(secret, settings), { metadata: { ownerReferences } }),
    ),
  );
}

export async function deleteSecrets(
  manifests: PodManifests,
  { client, settings }: PodSecretsDeps,
): Promise<void> {
  for (const secret of secretsOf(manifests))
    await client.delete(secretPath(secret, settings)).catch(() => undefined);
}

function ignoreNotFound(error: unknown): undefined {
  if (!isNotFound(error)) throw error;
}
