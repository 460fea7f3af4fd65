import type { InstanceVolume } from '../instance.ts';
import type { ClaimObject } from './kubernetes-objects.ts';
import type { ClusterSettings } from './kubernetes-options.ts';
import { ACCOUNT, DATA_CENTER, labelValue, ownershipLabels, podName } from './pod-labels.ts';

/** The id of a volume, for its claim and its volume server. */
export const VOLUME = 'berth/volume';
const VOLUME_ID = 'berth/volume-id';
/** The folder of a shared claim that instances mount. Beside it is what belongs to Berth. */
export const SHARED_DATA_FOLDER = 'data';

/** The claim of a volume. Network volumes are shared by pods on all nodes; a pod's own disk is not. */
export function volumeClaim(
  { id, sizeInGb, shared, type }: InstanceVolume,
  {
    installation,
    dataCenterId,
    settings,
  }: { installation: string; dataCenterId: string; settings: ClusterSettings },
  account: string,
): { metadata: { name: string }; [field: string]: unknown } {
  const storageClass =
    (type === undefined ? undefined : settings.storageClasses?.[type]) ??
    settings.storageClasses?.['default'];
  const metadata = {
    name: claimName(installation, id),
    labels: {
      ...ownershipLabels(installation),
      [DATA_CENTER]: labelValue(dataCenterId),
      [ACCOUNT]: account,
      [VOLUME]: labelValue(id),
    },
    annotations: { [VOLUME_ID]: id },
  };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata,
    spec: {
      accessModes: [shared ? (settings.sharedAccessMode ?? 'ReadWriteMany') : 'ReadWriteOnce'],
      resources: { requests: claimRequests(sizeInGb) },
      ...(storageClass !== undefined && { storageClassName: storageClass }),
    },
  };
}

export function claimName(installation: string, volumeId: string): string {
  return podName(installation, `volume-${volumeId}`);
}

export function claimRequests(sizeInGb: number): { storage: string } {
  return { storage: `${sizeInGb}Gi` };
}

/** The volume that a claim is of. */
export function volumeOf({ metadata }: ClaimObject): string | undefined {
  return metadata.annotations?.[VOLUME_ID];
}
