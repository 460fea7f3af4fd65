import { BerthError } from '../../support/errors.ts';

/**
 * Sentences that clients look for. GraphQL failures have no status of their own, so some
 * clients read the message; these words must stay as they are.
 */

/** dstack takes this for a volume that is gone already, and continues. */
export function networkVolumeToDeleteNotFound(id: string): BerthError {
  return new BerthError(
    'not-found',
    `Tried to delete nonexistent network volume ${JSON.stringify(id.slice(0, 64))}`,
  );
}

/** dstack finds this in `extensions.code`, and takes it for a cluster that is gone already. */
const CLUSTER_NOT_FOUND_CODE = 'Cluster not found';

export function clusterToDeleteNotFound(id: string): BerthError {
  return new BerthError('not-found', `cluster ${JSON.stringify(id.slice(0, 64))} not found`, {
    clientCode: CLUSTER_NOT_FOUND_CODE,
  });
}

/** Flash takes these words for an app that it has to make first; that there is none is no answer to it. */
export function flashAppNotFound(name: string): BerthError {
  return new BerthError('not-found', `app not found: ${JSON.stringify(name.slice(0, 64))}`);
}

/** dstack takes exactly these words for a pod that is gone already. */
export function podToTerminateNotFound(): BerthError {
  return new BerthError('not-found', 'pod not found to terminate');
}
