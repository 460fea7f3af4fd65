import type { Endpoint } from '../../../cloud/src/domain/records.ts';
import { sampleEndpoint } from '../../../cloud/src/resources/endpoints/endpoint.fixture.ts';
import type { SeededRandom } from '../safety/seeded-random.ts';
import type { SimulatedServer } from './simulated-server.ts';
import { DATA_CENTER } from './simulated-world.ts';
import { ACCOUNT } from './simulation-storage.ts';
import type { VirtualTime } from './virtual-time.ts';

/** The share of runs with an endpoint that is deleted while its workers run. */
const DELETION_SHARE = 0.3;

/** Those that get jobs, for the whole run. */
export function createEndpoints(random: SeededRandom): Endpoint[] {
  return Array.from({ length: random.pick([1, 2]) ?? 1 }, (_, index) => ({
    ...sampleEndpoint,
    id: `endpoint${index + 1}`,
    accountId: ACCOUNT,
    image: 'simulated',
    compute: 'CPU' as const,
    dataCenterIds: [DATA_CENTER],
    workersMax: random.between(1, 3),
    idleTimeout: random.between(1, 10),
    scalerType: random.pick(['QUEUE_DELAY', 'REQUEST_COUNT'] as const) ?? 'QUEUE_DELAY',
    scalerValue: random.between(1, 4),
    executionTimeout: random.pick([0, 20_000]) ?? 0,
    jobTtl: random.pick([60_000, 86_400_000]) ?? 86_400_000,
    maxRetries: random.between(0, 2),
    version: 1,
  }));
}

export interface EndpointDeletion {
  time: VirtualTime;
  random: SeededRandom;
  servers: readonly SimulatedServer[];
  /** What the deleted endpoint is like. */
  sample: Endpoint | undefined;
  trace(line: string): void;
}

/** In some runs, an endpoint with workers and without jobs is created and deleted, at any servers. */
export function deleteOneEndpoint(until: number, deps: EndpointDeletion): void {
  const { time, random, servers, sample, trace } = deps;
  if (sample === undefined || !random.chance(DELETION_SHARE)) return;
  const workers = random.between(1, 3);
  const endpoint = { ...sample, id: 'deleted', workersMin: workers, workersMax: workers };
  const ask = (what: string, request: (server: SimulatedServer) => void, next?: () => void): void => {
    const server = random.pick(servers.filter(({ process }) => process !== undefined));
    if (server === undefined) return void time.after(1_000, undefined, () => ask(what, request, next));
    trace(`${server.name} is asked to ${what} the endpoint ${endpoint.id}`);
    request(server);
    next?.();
  };
  const create = (server: SimulatedServer): void => server.createEndpoint(endpoint);
  const remove = (server: SimulatedServer): void => server.deleteEndpoint(endpoint.id);
  time.after((random.next() * until) / 2, undefined, () =>
    ask('create', create, () =>
      time.after((random.next() * until) / 2, undefined, () => ask('delete', remove)),
    ),
  );
}
