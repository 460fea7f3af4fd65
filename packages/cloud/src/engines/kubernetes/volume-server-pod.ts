import { VOLUME_SERVER_PORT } from '../../domain/volume-server-protocol.ts';
import { parseReference } from '../image-reference.ts';
import type { ClusterSettings } from './kubernetes-options.ts';
import { DATA_CENTER, labelValue, ownershipLabels, podName } from './pod-labels.ts';
import { CONTAINER_NAME, type InstanceManifests } from './pod-manifest.ts';
import { claimName, VOLUME } from './volume-claims.ts';

/** Marks the pods that serve the files of claims. */
export const VOLUME_SERVER = 'berth/volume-server';
const MOUNT_PATH = '/volume';
const IDLE_SECONDS = 300;
const GRACE_SECONDS = 5;
/** Files of a volume may belong to any user. */
const CAPABILITIES = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER'];

export interface VolumeServerContext {
  installation: string;
  dataCenterId: string;
  settings: ClusterSettings;
  volumeId: string;
  token: string;
}

export function volumeServerName(installation: string, volumeId: string): string {
  return podName(installation, `files-${volumeId}`);
}

/** The pod that serves the files of a claim. It ends by itself when nobody has asked for a while. */
export function volumeServerManifests(
  context: VolumeServerContext,
): Pick<InstanceManifests, 'name' | 'pod' | 'environment' | 'pullSecret'> {
  const { installation, dataCenterId, volumeId, token } = context;
  const name = volumeServerName(installation, volumeId);
  const labels = {
    ...ownershipLabels(installation),
    [DATA_CENTER]: labelValue(dataCenterId),
    [VOLUME]: labelValue(volumeId),
    [VOLUME_SERVER]: 'true',
  };
  return {
    name,
    pullSecret: undefined,
    environment: {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: `${name}-env`, labels },
      stringData: { BERTH_VOLUME_TOKEN: token },
    },
    pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels }, spec: podSpec(name, context) },
  };
}

function podSpec(
  name: string,
  { installation, settings, volumeId }: VolumeServerContext,
): Record<string, unknown> {
  return {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: GRACE_SECONDS,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    ...(settings.nodeSelector !== undefined && { nodeSelector: settings.nodeSelector }),
    ...(settings.tolerations !== undefined && { tolerations: settings.tolerations }),
    ...(settings.priorityClass !== undefined && { priorityClassName: settings.priorityClass }),
    securityContext: { runAsUser: 0, runAsGroup: 0, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: CONTAINER_NAME,
        image: parseReference(settings.berthImage).full,
        imagePullPolicy: 'IfNotPresent',
        command: ['berth'],
        args: ['volume', 'serve', MOUNT_PATH, '--idle', String(IDLE_SECONDS)],
        envFrom: [{ secretRef: { name: `${name}-env` } }],
        ports: [{ containerPort: VOLUME_SERVER_PORT }],
        resources: { requests: { cpu: '10m', memory: '96Mi' }, limits: { memory: '512Mi' } },
        securityContext: {
          privileged: false,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'], add: CAPABILITIES },
        },
        volumeMounts: [{ name: 'volume', mountPath: MOUNT_PATH }],
      },
    ],
    volumes: [{ name: 'volume', persistentVolumeClaim: { claimName: claimName(installation, volumeId) } }],
  };
}
