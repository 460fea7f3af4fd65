import { once } from 'node:events';
import { Agent, createServer, request as ask } from 'node:http';
import type { IncomingMessage, RequestListener, RequestOptions, Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import { EndpointCache } from '../../resources/endpoints/endpoint-cache.ts';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.fixture.ts';
import { Authenticator } from '../../auth/authenticator.ts';
import type { NewApiKey } from '../../resources/keys/api-keys.ts';
import { ApiKeys } from '../../resources/keys/api-keys.ts';
import type { Endpoint } from '../../domain/records.ts';
import { createLog } from '../../support/log.ts';
import { parseEndpointHost, parseEndpointPath } from './gateway-url.ts';
import type { GatewayUrl } from './gateway-url.ts';
import { WildcardDomain } from './wildcard-domain.ts';
import { EndpointGateway } from './endpoint-gateway.ts';
import type { GatewayLimits } from './gateway-limits.ts';
import type { Upstream, WorkerPool } from '../../domain/endpoints/worker-pool.ts';
import { requestsUpgrade } from './upgrade-detector.ts';
import { OpenAccesses } from '../../auth/open-access.ts';

export const DOMAIN = 'berth.test';
const domain = new WildcardDomain(DOMAIN);

/** The workers of one endpoint, set by the test. */
export class FakeWorkerPool implements WorkerPool {
  readonly #ready: Upstream[] = [];
  readonly #waiters = new Set<() => void>();
  /** Every count that was told, in order. */
  readonly demands: number[] = [];
  readonly touches: string[] = [];
  /** Workers that are there and not ready. */
  readonly starting = new Set<string>();
  /** Workers that can be resumed. */
  readonly stopped = new Map<string, Upstream>();
  /** Whether they are ready then; else they end again. */
  resumesReady = true;

  ready(): readonly Upstream[] {
    return this.#ready;
  }

  waitForChange(_endpointId: string, milliseconds: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiters.delete(done);
        resolve();
      };
      const timer = setTimeout(done, milliseconds);
      this.#waiters.add(done);
      signal.addEventListener('abort', done, { once: true });
      if (signal.aborted) done();
    });
  }

  reportDemand(_endpointId: string, requests: number): void {
    this.demands.push(requests);
  }

  reportActivity(_endpointId: string, workerId: string): void {
    this.touches.push(workerId);
  }

  exists(_endpointId: string, workerId: string): boolean {
    return this.starting.has(workerId);
  }

  async resume(_endpointId: string, workerId: string): Promise<boolean> {
    const worker = this.stopped.get(workerId);
    if (worker === undefined) return false;
    this.starting.add(workerId);
    setImmediate(() => {
      this.starting.delete(workerId);
      if (this.resumesReady) this.#ready.push(worker);
      this.#changed();
    });
    return true;
  }

  add(...workers: Upstream[]): void {
    this.#ready.push(...workers);
    this.#changed();
  }

  remove(workerId: string): void {
    const at = this.#ready.findIndex(({ id }) => id === workerId);
    if (at !== -1) this.#ready.splice(at, 1);
    this.#changed();
  }

  /** How many watch for a change. */
  get watchers(): number {
    return this.#waiters.size;
  }

  #changed(): void {
    for (const done of [...this.#waiters]) done();
  }
}

export interface TestWorker extends Upstream {
  server: Server;
  /** Connections that were opened to it. */
  connections: Set<Socket>;
  opened: number;
}

export interface GatewayFixtureOptions {
  limits?: Partial<GatewayLimits>;
  endpoint?: Partial<Endpoint>;
}

/** A gateway behind a real server, with real keys and a real client. */
export interface GatewayFixture {
  gateway: EndpointGateway;
  pool: FakeWorkerPool;
  port: number;
  key: string;
  endpoint: Endpoint;
  /** `/v2/{endpoint_id}` */
  base: string;
  newKey(settings: Omit<NewApiKey, 'name'>): Promise<string>;
  strangersKey: string;
  /** Changes the endpoint, or removes it, and says so. */
  change(settings: Partial<Endpoint> | 'removed'): void;
  /** A worker that answers with this, in rotation at once. */
  worker(id: string, listener: RequestListener, ready?: boolean): Promise<TestWorker>;
  /** Sends the headers; the body is the test's. */
  open(path: string, options?: RequestOptions & { body?: boolean }): ReturnType<typeof ask>;
  send(path: string, options?: RequestOptions, body?: string | Buffer): Promise<ReceivedResponse>;
  /** Bytes on a bare connection. */
  raw(text: string): Promise<Socket>;
  close(): Promise<void>;
}

export interface ReceivedResponse {
  status: number;
  headers: IncomingMessage['headers'];
  text: string;
  message: IncomingMessage;
}

export async function createGatewayFixture({
  limits = {},
  endpoint: settings = {},
}: GatewayFixtureOptions = {}): Promise<GatewayFixture> {
  const context = await createServiceContext();
  const authenticator = new Authenticator(context);
  const keys = new ApiKeys(context);
  const ann = await context.account('ann');
  const stranger = await context.account('bob');
  const { key } = await keys.create(ann, { name: 'k', access: 'all' });
  const { key: strangersKey } = await keys.create(stranger, { name: 'k', access: 'all' });
  const endpoint: Endpoint = {
    ...sampleEndpoint,
    id: 'ep1',
    accountId: ann.accountId,
    type: 'LOAD_BALANCER',
    scalerType: 'REQUEST_COUNT',
    scalerValue: 100,
    ...settings,
  };
  let removed = false;
  const endpoints = new EndpointCache(
    { findInAnyAccount: async (id) => (id === endpoint.id && !removed ? { ...endpoint } : undefined) },
    context.clock,
  );
  const pool = new FakeWorkerPool();
  const gateway = new EndpointGateway({
    pool,
    authenticator,
    openAccesses: new OpenAccesses(context),
    endpoints,
    log: createLog({ level: 'silent', format: 'json' }),
    limits,
  });
  const addressOf = (request: IncomingMessage): GatewayUrl | undefined =>
    parseEndpointHost(request.headers.host, request.url ?? '', domain) ??
    parseEndpointPath(request.url ?? '');
  const server = createServer({ shouldUpgradeCallback: requestsUpgrade });
  for (const event of ['request', 'checkContinue'] as const) {
    server.on(event, (request, response) => {
      const address = addressOf(request);
      if (address === undefined) response.writeHead(404).end();
      else void gateway.serve(request, response, address, event === 'checkContinue');
    });
  }
  server.on('upgrade', (request, socket, head) => {
    const address = addressOf(request);
    if (address === undefined) socket.destroy();
    else void gateway.upgrade(request, socket, head, address);
  });
  const port = await listen(server);
  const agent = new Agent({ keepAlive: true });
  const workers: TestWorker[] = [];

  const fixture: GatewayFixture = {
    gateway,
    pool,
    port,
    key,
    strangersKey,
    endpoint,
    base: `/v2/${endpoint.id}`,
    newKey: async (request) => (await keys.create(ann, { name: 'k', ...request })).key,
    change: (changes) => {
      if (changes === 'removed') removed = true;
      else Object.assign(endpoint, changes);
      endpoints.invalidate(endpoint.id);
      gateway.refreshEndpoint(endpoint.id);
    },
    worker: async (id, listener, ready = true) => {
      const started = await startWorker(id, listener);
      workers.push(started);
      if (ready) pool.add(started);
      return started;
    },
    open: (path, { headers, ...options } = {}) =>
      ask({
        host: '127.0.0.1',
        port,
        agent,
        path: `${fixture.base}${path}`,
        ...options,
        headers: { authorization: `Bearer ${key}`, ...(headers as Record<string, string>) },
      }),
    send: async (path, options, body) => {
      const outgoing = fixture.open(path, options);
      outgoing.end(body);
      return readResponse(outgoing);
    },
    raw: async (text) => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => socket.destroy());
      await once(socket, 'connect');
      socket.write(text);
      return socket;
    },
    close: async () => {
      gateway.close();
      agent.destroy();
      server.closeAllConnections();
      await closeServer(server);
      for (const worker of workers) await stopWorker(worker);
      await context.close();
    },
  };
  return fixture;
}

export async function startWorker(id: string, listener: RequestListener): Promise<TestWorker> {
  const server = createServer({ keepAliveTimeout: 60_000 }, listener);
  const connections = new Set<Socket>();
  const worker: TestWorker = { id, host: '127.0.0.1', port: 0, server, connections, opened: 0 };
  server.on('connection', (socket) => {
    worker.opened += 1;
    connections.add(socket);
    socket.on('close', () => connections.delete(socket));
  });
  worker.port = await listen(server);
  return worker;
}

export async function stopWorker({ server, connections }: TestWorker): Promise<void> {
  for (const socket of connections) socket.destroy();
  await closeServer(server);
}

/** A port on which nobody listens. */
export async function closedPort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await closeServer(server);
  return port;
}

export async function readResponse(outgoing: ReturnType<typeof ask>): Promise<ReceivedResponse> {
  const [message] = (await once(outgoing, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return {
    status: message.statusCode ?? 0,
    headers: message.headers,
    text: Buffer.concat(chunks).toString(),
    message,
  };
}

export function latch(): { opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: () => resolve() };
}

/** Everything that comes over a connection until it closes. */
export async function readAll(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('latin1');
}

/** Resolves as soon as something is so; looks after every turn of the event loop. */
export async function waitUntil(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}

/**
 * Resolves when a number has stopped growing: all ends are in this process, so that nothing moves is seen
 * after a while of turns.
 */
export async function waitUntilStable(count: () => number): Promise<void> {
  let before = count();
  for (let turns = 0; turns < 2000; turns += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    if (count() === before) continue;
    before = count();
    turns = 0;
  }
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, 'close');
  server.close();
  await closed;
}
