import type { ApiClient } from '../api-client.ts';
import { requireByIdOrName } from '../find-by-id-or-name.ts';

/** The fields of a pod that the commands use. */
export interface PodView {
  id: string;
  name: string;
  status: string;
  statusDetail: string | null;
  image: string;
  ports: string[];
  gpu?: { id: string; count: number; virtual?: boolean };
  cpu?: { id: string; vcpuCount: number };
  dataCenterId: string | null;
  cost: number;
  ssh: { direct: { command: string } | null };
  runtime: { uptime: number; cpu: { util: number }; memory: { util: number } } | null;
}

export const podArgumentHelp = 'The pod, by id or name.';

export function podPath({ id }: Pick<PodView, 'id'>, below = ''): string {
  return `/v2/pods/${encodeURIComponent(id)}${below}`;
}

export function listPods(client: ApiClient): Promise<PodView[]> {
  return client.listAll<PodView>('/v2/pods', 'pods');
}

/** Finds a pod by id or by a unique name. */
export async function findPod(client: ApiClient, word: string): Promise<PodView> {
  return requireByIdOrName(await listPods(client), word, { noun: 'pod', listCommand: 'berth pod ls' });
}

/** The URLs of a pod's HTTP ports. */
export function podHttpUrls(
  client: Pick<ApiClient, 'url'>,
  { id, ports }: Pick<PodView, 'id' | 'ports'>,
): string[] {
  return ports
    .filter((port) => port.endsWith('/http'))
    .map((port) => `${client.url}/proxy/${id}-${Number.parseInt(port, 10)}/`);
}

export function formatHardware({ gpu, cpu }: Pick<PodView, 'gpu' | 'cpu'>): string {
  if (gpu !== undefined) return `${gpu.count} x ${gpu.id}${gpu.virtual === true ? ' (virtual)' : ''}`;
  return cpu === undefined ? '' : `${cpu.id}-${cpu.vcpuCount}`;
}
