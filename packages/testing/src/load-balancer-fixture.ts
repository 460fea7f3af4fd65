import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { after, before } from 'node:test';
import { text } from 'node:stream/consumers';
import type { ApiResponse, ApiClient } from './api-client.ts';
import { createTestDatabase } from './test-database.ts';
import type { TestDatabase } from './test-database.ts';
import { startServerProcess } from './server-process.ts';
import type { ServerProcess } from './server-process.ts';
import { waitFor } from './wait-for.ts';

export const DOMAIN = 'berth.test';
/** The address that clients are given: below the same domain as the endpoints. */
export const PUBLIC_HOST = `cloud.${DOMAIN}`;
export const WORKER_HEADER = 'x-runpod-worker-id';
const WEB_SOCKET = '../../../examples/http-server/web-socket.ts';

export interface LoadBalancedWorkerState {
  worker: string;
  pings: number[];
  open: string[];
  abandoned: string[];
  unread: string[];
}

/** A running server for load balancing endpoints. Its endpoints go before it does: workers outlive it. */
export interface LoadBalancerFixture {
  server: ServerProcess;
  client: ApiClient;
  /**
   * A load balancing endpoint of the test worker: a CPU, and one worker at all times if not said otherwise.
   */
  endpoint(settings?: {
    workers?: object;
    env?: Record<string, string>;
    requestCount?: number;
  }): Promise<LoadBalancerEndpoint>;
}

export interface LoadBalancerEndpoint {
  id: string;
  call<T = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<ApiResponse<T>>;
  /** A request whose body and answer are the test's to send and to read. */
  openRequest(path: string, options?: RequestOptions): ClientRequest;
  workerState(workerId?: string): Promise<LoadBalancedWorkerState>;
  /** Tells an open answer something; with nothing, ends it. */
  writeToOpenResponse(name: string, words?: string, workerId?: string): Promise<void>;
}

export function loadBalancerFixture(): LoadBalancerFixture {
  const fixture = {} as LoadBalancerFixture;
  let place: TestDatabase;
  let image: string;
  const made: string[] = [];
  before(async () => {
    place = await createTestDatabase('sqlite');
    fixture.server = await startServerProcess(place, {
      BERTH_RATE_LIMITS: 'off',
      BERTH_DOMAIN: DOMAIN,
      BERTH_PUBLIC_URL: `http://${PUBLIC_HOST}`,
    });
    fixture.client = fixture.server.client();
    image = await uploadWorker(fixture.client);
  });
  fixture.endpoint = async ({ workers = { min: 1, max: 1 }, env = {}, requestCount = 100 } = {}) => {
    const {
      status,
      body,
      text: said,
    } = await fixture.client.call<{ id: string }>('POST', '/v2/serverless', {
      name: 'balanced',
      type: 'LOAD_BALANCER',
      image,
      cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
      scaling: { type: 'REQUEST_COUNT', requestCount },
      workers,
      env,
    });
    assert.equal(status, 201, said);
    made.push(body.id);
    return endpointOf(fixture, body.id);
  };
  after(async () => {
    for (const id of made) await fixture.client.call('DELETE', `/v2/serverless/${id}`);
    await fixture.server?.stop();
    await place?.drop();
  });
  return fixture;
}

async function uploadWorker(client: ApiClient): Promise<string> {
  const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');
  const contents = {
    'server.ts': read('./load-balanced-worker.ts').replace(WEB_SOCKET, './web-socket.ts'),
    'web-socket.ts': read(WEB_SOCKET),
    'berth.json': JSON.stringify({ command: ['node', 'server.ts'] }),
  };
  const files = Object.entries(contents).map(([path, content]) => ({
    path,
    data: Buffer.from(content).toString('base64'),
  }));
  const {
    status,
    body,
    text: said,
  } = await client.call<{ image: string }>('POST', '/v2/images', { name: 'balanced', files });
  assert.equal(status, 201, said);
  return body.image;
}

function endpointOf({ client, server }: LoadBalancerFixture, id: string): LoadBalancerEndpoint {
  const call: LoadBalancerEndpoint['call'] = (method, path, body, headers) =>
    client.call(method, `/v2/${id}${path}`, body, headers);
  const to = (workerId: string | undefined): Record<string, string> =>
    workerId === undefined ? {} : { [WORKER_HEADER]: `strict ${workerId}` };
  return {
    id,
    call,
    openRequest: (path, { headers, ...options } = {}) => {
      const asking = request(`${server.url}/v2/${id}${path}`, {
        agent: false,
        ...options,
        headers: { authorization: `Bearer ${server.key}`, ...(headers as Record<string, string>) },
      });
      // Whoever reads the answer hears of it there.
      asking.on('error', () => undefined);
      return asking;
    },
    workerState: async (workerId) =>
      (await call<LoadBalancedWorkerState>('GET', '/about', undefined, to(workerId))).body,
    writeToOpenResponse: async (name, words = '', workerId) => {
      const { status } = await call('POST', `/tell/${name}`, words, to(workerId));
      assert.equal(status, 200);
    },
  };
}

export async function responseOf(asking: ClientRequest): Promise<IncomingMessage> {
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  return response;
}

/** The whole answer of a request that is open. */
export async function readResponse(
  asking: ClientRequest,
): Promise<{ status: number; headers: IncomingMessage['headers']; text: string }> {
  const response = await responseOf(asking);
  return { status: response.statusCode ?? 0, headers: response.headers, text: await text(response) };
}

/** The next piece of an answer that comes bit by bit. */
export async function nextChunk(response: IncomingMessage): Promise<string> {
  for (;;) {
    const piece = response.read() as Buffer | null;
    if (piece !== null) return piece.toString();
    await once(response, 'readable');
  }
}

export async function waitForReadyWorkers(
  client: ApiClient,
  endpointId: string,
  count: number,
): Promise<string[]> {
  return waitFor(`${count} workers are ready`, async () => {
    const { body } = await client.call<{ workers: { id: string; status: string }[] }>(
      'GET',
      `/v2/serverless/${endpointId}/workers`,
    );
    const ready = body.workers
      .filter(({ status }) => status === 'IDLE' || status === 'RUNNING')
      .map(({ id }) => id);
    return ready.length === count ? ready : undefined;
  });
}
