import type { InstanceEngine } from '../../engines/engine.ts';
import type { InstanceMount, InstanceSpec } from '../../engines/instance.ts';
import { symmetricPortVariables } from '../../domain/pods/container-port.ts';
import { BerthError } from '../../support/errors.ts';
import { podEnvironment } from './pod-environment.ts';
import { podSpec } from './pod-spec.ts';
import type { PodVolumeDisks } from './pod-volume-disks.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';

/** What a pod is given, from wherever in the house it is kept. */
export interface PodSpecSources {
  /** The environment with its secrets filled in. */
  resolveEnv(accountId: string, env: Record<string, string>): Promise<Record<string, string>>;
  /** What an image is pulled with: saved credentials that are named, or what the account has for this image. */
  credentials(
    accountId: string,
    registryId: string | null,
    image: string,
  ): Promise<{ username: string; password: string } | undefined>;
  sshKeys(accountId: string): Promise<readonly string[]>;
  jupyterPassword(podId: string): string;
  /** Where TCP ports are reached from outside. */
  publicIp(): string;
  /** A pod's own key. */
  tokenFor(podId: string): string;
  /** Where the pods of a data center reach Berth. */
  apiUrl(dataCenterId: string): Promise<string>;
  /** Where the network volume of a pod lies; undefined where it has none, or it is gone. */
  networkVolume(pod: Pod): Promise<{ folder: string } | undefined>;
  volumeDisks: Pick<PodVolumeDisks, 'pathOf'>;
}

/** Gathers what this pod needs to run. */
export async function buildPodSpec(
  pod: Pod,
  engine: InstanceEngine,
  provisions: PodSpecSources,
  onProgress: (line: string) => void,
): Promise<InstanceSpec> {
  const { resolveEnv, credentials, sshKeys, jupyterPassword, publicIp, tokenFor, apiUrl } = provisions;
  const own = await resolveEnv(pod.accountId, pod.env);
  return podSpec(pod, engine, {
    env: podEnvironment(pod, {
      userVariables: {
        ...own,
        ...symmetricPortVariables(
          pod.ports.map((entry) => Number.parseInt(entry, 10)),
          engine,
        ),
      },
      sshKeys: pod.startSsh ? await sshKeys(pod.accountId) : [],
      jupyterPassword: jupyterPassword(pod.id),
      publicIp: publicIp(),
      apiKey: tokenFor(pod.id),
      apiUrl: await apiUrl(pod.dataCenterId),
    }),
    mounts: await mountsOf(pod, provisions),
    registry: await credentials(pod.accountId, pod.registryId, pod.image),
    onProgress,
  });
}

async function mountsOf(pod: Pod, { networkVolume, volumeDisks }: PodSpecSources): Promise<InstanceMount[]> {
  if (pod.networkVolumeId === null)
    return pod.volumeSize > 0 ? [{ source: volumeDisks.pathOf(pod.id), path: pod.volumePath }] : [];
  const volume = await networkVolume(pod);
  if (volume === undefined)
    throw new BerthError(
      'rule',
      `its network volume ${pod.networkVolumeId} is not in ${pod.dataCenterId} any more`,
    );
  return [{ source: volume.folder, path: pod.volumePath }];
}
