import type { Pod, PodAction } from '../../api/resources.ts';

export const POD_STATUSES = ['RUNNING', 'STARTING', 'PROVISIONING', 'EXITED', 'ERROR'] as const;

/** `2 × NVIDIA A40 (virtual)`, `4 vCPU cpu3c`. */
export function hardwareOf({ gpu, cpu }: Pick<Pod, 'gpu' | 'cpu'>): string {
  if (gpu !== undefined)
    return `${gpu.count === 1 ? '' : `${gpu.count} × `}${gpu.id}${gpu.virtual === true ? ' (virtual)' : ''}`;
  return cpu === undefined ? '' : `${cpu.vcpuCount} vCPU ${cpu.id}`;
}

export interface ActionWords {
  title: string;
  button: string;
  /** What is kept and what is lost. */
  lost: string;
  danger: boolean;
}

/** What each action keeps and loses, for this pod. */
export function actionWords(action: PodAction, pod: Pick<Pod, 'name' | 'mounts'>): ActionWords {
  const { name, mounts } = pod;
  const network = (mounts.network?.length ?? 0) > 0;
  const persistent = mounts.persistent;
  const keptAtStop = network
    ? `The network volume at ${mounts.network?.[0]?.path ?? ''} stays.`
    : persistent === undefined
      ? 'It has no volume, so nothing of its files is kept.'
      : `The volume at ${persistent.path} (${persistent.size} GB) stays.`;
  switch (action) {
    case 'start':
      return {
        title: `Start ${name}?`,
        button: 'Start',
        lost: 'It gets its hardware again, where that is free, and is charged from then on.',
        danger: false,
      };
    case 'stop':
      return {
        title: `Stop ${name}?`,
        button: 'Stop the pod',
        lost:
          `What runs in it ends, and the container disk is emptied. ${keptAtStop} Its hardware may ` +
          'go to others, so that it may have to wait when it starts again.',
        danger: true,
      };
    case 'restart':
      return {
        title: `Restart ${name}?`,
        button: 'Restart the pod',
        lost: `What runs in it ends, and the container disk is emptied. ${keptAtStop} It keeps its place and hardware.`,
        danger: true,
      };
    case 'terminate':
      return {
        title: `Terminate ${name}?`,
        button: 'Terminate the pod',
        lost:
          'The pod, its container disk' +
          `${persistent === undefined ? '' : ` and its volume at ${persistent.path} (${persistent.size} GB)`} ` +
          `are deleted. ${network ? keptAtStop : 'Nothing of its files is kept.'} This cannot be undone.`,
        danger: true,
      };
  }
}
