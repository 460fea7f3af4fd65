import type { Pod } from '../store/pods.ts';

export interface PodSurroundings {
  /** The pod's own variables, with their secrets filled in. */
  own: Record<string, string>;
  sshKeys: readonly string[];
  jupyterPassword: string;
  /** Where its TCP ports are reached. */
  publicIp: string;
}

/** What a pod finds in its environment. What is said about the pod goes over its own variables; what is offered to it goes under. */
export function podEnvironment(pod: Pod, { own, sshKeys, jupyterPassword, publicIp }: PodSurroundings): Record<string, string> {
  return {
    ...(pod.startSsh && sshKeys.length > 0 && { PUBLIC_KEY: sshKeys.join('\n') }),
    ...(pod.startJupyter && { JUPYTER_PASSWORD: jupyterPassword }),
    ...own,
    RUNPOD_POD_ID: pod.id,
    RUNPOD_POD_HOSTNAME: pod.id,
    RUNPOD_DC_ID: pod.dataCenterId,
    RUNPOD_GPU_COUNT: String(pod.gpuCount),
    RUNPOD_CPU_COUNT: String(pod.vcpuCount),
    RUNPOD_MEM_GB: String(pod.memoryInGb),
    RUNPOD_PUBLIC_IP: publicIp,
    ...(pod.networkVolumeId !== null && { RUNPOD_VOLUME_ID: pod.networkVolumeId }),
  };
}
