import { once } from 'node:events';
import { Agent, createServer, request as ask } from 'node:http';
import type { IncomingMessage, RequestListener, RequestOptions, Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { freshContext } from '../../../../../tests/support/context.ts';
import { EndpointDirectory } from '../../resources/endpoints/directory.ts';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.sample.ts';
import { Gate } from '../../resources/keys/gate.ts';
import type { NewKey } from '../../resources/keys/keys.ts';
import { Keys } from '../../resources/keys/keys.ts';
import type { Endpoint } from '../../store/records.ts';
import { createLog } from '../../support/log.ts';
import { hostAddress, pathAddress } from './address.ts';
import type { GatewayAddress } from './address.ts';
import { Domain } from './domain.ts';
import { Gateway } from './gateway.ts';
import type { GatewayLimits } from './limits.ts';
import type { BalancedWorker, WorkerPool } from './pool.ts';
import { asksForAnotherProtocol } from './upgrades.ts';

export const DOMAIN = 'berth.test';
const domain = new Domain(DOMAIN);

/** The workers of one endpoint, set by hand. */
export class TestPool implements WorkerPool {
  readonly #ready: BalancedWorker[] = [];
  readonly #waiters = new Set<() => void>();
  /** Every count that was told, in order. */
  readonly demands: number[] = [];
  readonly touches: string[] = [];
  /** Workers that are there and not ready. */
  readonly starting = new Set<string>();
  /** Workers that can be resumed. */
  readonly stopped = new Map<string, BalancedWorker>();
  /** Whether they are ready then; else they end again. */
  comesBack = true;

  ready(): readonly BalancedWorker[] {
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

  demand(_endpointId: string, requests: number): void {
    this.demands.push(requests);
  }

  touched(_endpointId: string, workerId: string): void {
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
      if (this.comesBack) this.#ready.push(worker);
      this.#changed();
    });
    return true;
  }

  add(...workers: BalancedWorker[]): void {
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

export interface TestWorker extends BalancedWorker {
  server: Server;
  /** Connections that were opened to it. */
  connections: Set<Socket>;
  opened: number;
}

export interface StageOptions {
  limits?: Partial<GatewayLimits>;
  endpoint?: Partial<Endpoint>;
}

/** A gateway behind a real server, with real keys and a real client. */
export interface Stage {
  gateway: Gateway;
  pool: TestPool;
  port: number;
  key: string;
  endpoint: Endpoint;
  /** `/v2/{endpoint_id}` */
  base: string;
  newKey(settings: Omit<NewKey, 'name'>): Promise<string>;
  strangersKey: string;
  /** Changes the endpoint, or removes it, and says so. */
  change(settings: Partial<Endpoint> | 'removed'): void;
  /** A worker that answers with this, in rotation at once. */
  worker(id: string, listener: RequestListener, ready?: boolean): Promise<TestWorker>;
  /** Sends the headers; the body is the test's. */
  open(path: string, options?: RequestOptions & { body?: boolean }): ReturnType<typeof ask>;
  send(path: string, options?: RequestOptions, body?: string | Buffer): Promise<Answer>;
  /** Bytes on a bare connection. */
  raw(text: string): Promise<Socket>;
  close(): Promise<void>;
}

export interface Answer {
  status: number;
  headers: IncomingMessage['headers'];
  text: string;
  message: IncomingMessage;
}

export async function gatewayStage({
  limits = {},
  endpoint: settings = {},
}: StageOptions = {}): Promise<Stage> {
  const context = await freshContext();
  const gate = new Gate(context);
  const keys = new Keys(context, () => gate.forget());
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
  const endpoints = new EndpointDirectory(
    { findAnywhere: async (id) => (id === endpoint.id && !removed ? { ...endpoint } : undefined) },
    context.clock,
  );
  const pool = new TestPool();
  const gateway = new Gateway({
    pool,
    gate,
    endpoints,
    log: createLog({ level: 'silent', format: 'json' }),
    limits,
  });
  const addressOf = (request: IncomingMessage): GatewayAddress | undefined =>
    hostAddress(request.headers.host, request.url ?? '', domain) ?? pathAddress(request.url ?? '');
  const server = createServer({ shouldUpgradeCallback: asksForAnotherProtocol });
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

  const stage: Stage = {
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
      endpoints.forget(endpoint.id);
      gateway.lookAgain(endpoint.id);
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
        path: `${stage.base}${path}`,
        ...options,
        headers: { authorization: `Bearer ${key}`, ...(headers as Record<string, string>) },
      }),
    send: async (path, options, body) => {
      const outgoing = stage.open(path, options);
      outgoing.end(body);
      return answerOf(outgoing);
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
  return stage;
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
export async function deadPort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await closeServer(server);
  return port;
}

export async function answerOf(outgoing: ReturnType<typeof ask>): Promise<Answer> {
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

export function gate(): { opened: Promise<void>; open(): void } {
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
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}

/** Resolves when a number has stopped growing: all ends are in this process, so that nothing moves is seen after a while of turns. */
export async function standsStill(count: () => number): Promise<void> {
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
