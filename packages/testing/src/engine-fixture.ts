import { readdirSync, readFileSync } from 'node:fs';
import { DockerClient } from '../../cloud/src/engines/docker/client/docker-client.ts';
import type { ListedContainer, Network } from '../../cloud/src/engines/docker/client/docker-objects.ts';
import { createTestImage } from './docker-test-image.mjs';

/** An engine as the stories that run over all of them see it. */
export interface EngineFixture {
  name: string;
  dataCenterId: string;
  /** Has Node and a shell, and no command of its own. */
  image: string;
  /** For the server. */
  env: Record<string, string>;
  /**
   * The workers of an endpoint that have something running or lying about now, each with what makes its run
   * another one than the next.
   */
  instancesOf(endpointId: string): Promise<Map<string, string>>;
  /** The networks that clusters have there now, where the engine makes any. */
  networks?(): Promise<string[]>;
  close(): Promise<void>;
}

export function processEngineFixture(): EngineFixture {
  return {
    name: 'process',
    dataCenterId: 'LOCAL-1',
    image: 'local/shell',
    env: {},
    instancesOf: async (endpointId) => processesOf(endpointId),
    close: async () => undefined,
  };
}

export async function dockerEngineFixture(
  host: string,
  createImage: () => Promise<{ name: string; remove(): Promise<void> }> = () =>
    createTestImage(host, `localhost/berth-story:p${process.pid}`, { volume: '/data' }),
): Promise<EngineFixture> {
  const image = await createImage();
  const docker = new DockerClient(host);
  return {
    name: 'Docker',
    dataCenterId: 'DOCKER-1',
    image: image.name,
    env: { BERTH_DOCKER: host },
    instancesOf: async (endpointId) => {
      const containers = await docker.get<ListedContainer[]>('/containers/json', {
        all: true,
        filters: { label: [`berth.label.endpoint=${endpointId}`] },
      });
      return new Map(containers.map(({ Id: id, Labels: labels }) => [labels['berth.instance'] ?? '', id]));
    },
    networks: async () => (await docker.get<Network[]>('/networks')).map(({ Name: network }) => network),
    close: () => image.remove(),
  };
}

/** By the environment of all processes there are; the first process of each worker tells its start. */
function processesOf(endpointId: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const pid of readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .sort((a, b) => Number(a) - Number(b))) {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
      const worker = environment.includes(`RUNPOD_ENDPOINT_ID=${endpointId}\0`)
        ? /RUNPOD_POD_ID=(\w+)/.exec(environment)?.[1]
        : undefined;
      if (worker !== undefined && !found.has(worker)) found.set(worker, pid);
    } catch {
      // It ended meanwhile, or this user may not read it.
    }
  }
  return found;
}
