import { closestMatch } from '../../support/config/did-you-mean.ts';
import type { ApiClient } from '../api-client.ts';
import { CliError } from '../cli.errors.ts';

/** The fields of a pod that the commands use. */
export interface PodView {
  id: string;
  name: string;
  status: string;
  statusDetail: string | null;
  image: string;
  ports: string[];
  gpu?: { id: string; count: number };
  cpu?: { id: string; vcpuCount: number };
  dataCenterId: string | null;
  cost: number;
  ssh: { direct: { command: string } | null };
  runtime: { uptime: number; cpu: { util: number }; memory: { util: number } } | null;
}

interface PodPage {
  pods: PodView[];
  pagination: { nextCursor: string | null };
}

export const podArgumentHelp = 'The pod, by id or name.';

export function podPath({ id }: Pick<PodView, 'id'>, below = ''): string {
  return `/v2/pods/${encodeURIComponent(id)}${below}`;
}

export async function listPods(client: ApiClient): Promise<PodView[]> {
  const found: PodView[] = [];
  let cursor: string | null = null;
  do {
    const page: PodPage = await client.get<PodPage>(
      `/v2/pods${cursor === null ? '' : `?cursor=${encodeURIComponent(cursor)}`}`,
    );
    found.push(...page.pods);
    cursor = page.pagination.nextCursor;
  } while (cursor !== null);
  return found;
}

/** Finds a pod by id or by a unique name. */
export async function findPod(client: ApiClient, word: string): Promise<PodView> {
  const all = await listPods(client);
  const byId = all.filter(({ id }) => id === word);
  const found = byId.length > 0 ? byId : all.filter(({ name }) => name === word);
  if (found.length > 1)
    throw new CliError(
      `${found.length} pods are called ${JSON.stringify(word)}; name one by its id: ` +
        `${found.map(({ id }) => id).join(', ')}`,
    );
  const [pod] = found;
  if (pod !== undefined) return pod;
  const close = closestMatch(
    word,
    all.map(({ name }) => name),
  );
  throw new CliError(
    'there is no pod ' +
      `${JSON.stringify(word)}${close === undefined ? '; "berth pod ls" shows all' : `; did you mean ${JSON.stringify(close)}?`}`,
  );
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
  if (gpu !== undefined) return `${gpu.count} x ${gpu.id}`;
  return cpu === undefined ? '' : `${cpu.id}-${cpu.vcpuCount}`;
}
