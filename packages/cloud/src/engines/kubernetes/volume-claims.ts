import type { InstanceVolume } from '../instance.ts';
import type { ClusterSettings } from './kubernetes-options.ts';
import { ACCOUNT, DATA_CENTER, labelValue, ownershipLabels, podName } from './pod-labels.ts';

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
    name: podName(installation, `volume-${id}`),
    labels: {
      ...ownershipLabels(installation),
      [DATA_CENTER]: labelValue(dataCenterId),
      [ACCOUNT]: account,
      'berth/volume': labelValue(id),
    },
  };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata,
    spec: {
      accessModes: [shared ? (settings.sharedAccessMode ?? 'ReadWriteMany') : 'ReadWriteOnce'],
      resources: { requests: { storage: `${sizeInGb}Gi` } },
      ...(storageClass !== undefined && { storageClassName: storageClass }),
    },
  };
}
