import type { InstanceEngine } from '../../engines/engine.ts';
import type { InstanceMount, InstanceSpec } from '../../engines/instance.ts';
import { symmetricPortVariables } from '../../domain/pods/container-port.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';
import { BerthError } from '../../support/errors.ts';
import type { InstanceSpecSources } from '../instance-spec-sources.ts';
import { podEnvironment } from './pod-environment.ts';
import { podSpec } from './pod-spec.ts';
import type { PodVolumeDisks } from './pod-volume-disks.ts';

/** Where a pod gets what it needs to run. */
export interface PodSpecSources extends InstanceSpecSources {
  sshKeys(accountId: string): Promise<readonly string[]>;
  jupyterPassword(podId: string): string;
  /** The address at which TCP ports are reached from outside. */
  publicIp(): string;
  /** The pod's own API key. */
  tokenFor(podId: string): string;
  /** The directory of the pod's network volume; undefined if it has none, or it is gone. */
  networkVolume(pod: Pod): Promise<{ id: string; folder: string; size: number; type: string } | undefined>;
  volumeDisks: Pick<PodVolumeDisks, 'pathOf'>;
}

export async function buildPodSpec(
  pod: Pod,
  engine: InstanceEngine,
  sources: PodSpecSources,
  onProgress: (line: string) => void,
): Promise<InstanceSpec> {
  const declaredPorts = pod.ports.map((entry) => Number.parseInt(entry, 10));
  const userVariables = {
    ...(await sources.resolveEnv(pod.accountId, pod.env)),
    ...symmetricPortVariables(declaredPorts, engine),
  };
  const sandbox = sources.sandbox?.(pod.dataCenterId);
  const spec = podSpec(pod, engine, {
    env: podEnvironment(pod, {
      userVariables,
      sshKeys: pod.startSsh ? await sources.sshKeys(pod.accountId) : [],
      jupyterPassword: sources.jupyterPassword(pod.id),
      publicIp: sources.publicIp(),
      apiKey: sources.tokenFor(pod.id),
      apiUrl: await sources.serverUrl(pod.dataCenterId),
    }),
    mounts: await mountsOf(pod, sources),
    registry: await sources.credentials(pod.accountId, pod.registryId, pod.image),
    onProgress,
  });
  return sandbox === undefined ? spec : { ...spec, sandbox };
}

async function mountsOf(pod: Pod, { networkVolume, volumeDisks }: PodSpecSources): Promise<InstanceMount[]> {
  if (pod.networkVolumeId === null)
    return pod.volumeSize > 0
      ? [
          {
            source: volumeDisks.pathOf(pod.id),
            path: pod.volumePath,
            volume: { id: pod.id, sizeInGb: pod.volumeSize, shared: false },
          },
        ]
      : [];
  const volume = await networkVolume(pod);
  if (volume === undefined)
    throw new BerthError(
      'rule',
      `its network volume ${pod.networkVolumeId} is not in ${pod.dataCenterId} any more`,
    );
  return [
    {
      source: volume.folder,
      path: pod.volumePath,
      volume: { id: volume.id, sizeInGb: volume.size, shared: true, type: volume.type },
    },
  ];
}
