import { once } from 'node:events';
import http from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { FakePlatformChannel } from './fake-platform-channel.ts';
import type { FakeJob, FakeJobResult, ReceivedMessage } from './fake-job.ts';

interface HeldPoll {
  workerId: string;
  capacity: number;
  response: ServerResponse;
}

/** Instead of a status: the connection is closed, or there is no answer at all. */
export const CLOSE_CONNECTION = 'close';
export const NO_RESPONSE = 'silence';

const ENDPOINT = 'ep1';
const KEY = 'key of the worker';

/**
 * The platform's side of both ways, as small as it can be and on real sockets: a queue in memory
 * that a test can look into, break and bring back.
 */
export class FakePlatform {
  readonly jobs = new Map<string, FakeJob>();
  readonly received: ReceivedMessage[] = [];
  readonly channels = new Set<FakePlatformChannel>();
  readonly #sockets = new Set<Duplex>();
  readonly #takes = new Set<HeldPoll>();
  readonly #stops = new Set<HeldPoll>();
  readonly #watchers = new Set<() => void>();
  #server: http.Server | undefined;
  #port = 0;
  #number = 0;
  offersChannel: boolean;
  /** Jobs that were not begun may come back. */
  acceptsReturns = false;
  /** Chunks that have a number are acknowledged. */
  acknowledgesNumberedChunks = false;
  /** Whether heartbeats are answered. Where it is not set, the server does not say that they are. */
  answersHeartbeats: boolean | undefined;
  /** What is acknowledged of them; a number is left out where nothing shall be said. */
  acknowledgesChunk: (job: FakeJob, number: number) => boolean = () => true;
  /** Results on the channel are acknowledged. */
  acknowledgesResults = true;
  acknowledgesReturns = true;
  /** A longer line breaks its channel. */
  maxLineLength = Infinity;
  /** Questions that have nothing to tell are answered at once instead of held. */
  holdsEmptyPolls = true;
  /** A status that a request is answered with instead of the right one. */
  fault: (
    what: string,
    jobId: string | undefined,
  ) => number | typeof CLOSE_CONNECTION | typeof NO_RESPONSE | undefined = () => undefined;
  /** The worker has closed its side of a channel; the other one is still open. */
  onWorkerEnd: (channel: FakePlatformChannel) => void = () => undefined;

  constructor({ channel }: { channel: boolean }) {
    this.offersChannel = channel;
  }

  static async start(options: { channel: boolean }): Promise<FakePlatform> {
    const server = new FakePlatform(options);
    await server.listen();
    return server;
  }

  async listen(): Promise<void> {
    const server = http.createServer((request, response) => void this.#answer(request, response));
    server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    server.listen(this.#port, '127.0.0.1');
    await once(server, 'listening');
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Breaks every connection and is gone, until `listen`. What it knows of jobs, it keeps. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = once(server, 'close');
    server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  environment(variables: Record<string, string> = {}): Record<string, string> {
    const base = `http://127.0.0.1:${this.#port}/v2/${ENDPOINT}`;
    return {
      RUNPOD_POD_ID: 'worker-1',
      RUNPOD_POD_HOSTNAME: 'worker-1-host',
      RUNPOD_ENDPOINT_ID: ENDPOINT,
      RUNPOD_AI_API_KEY: KEY,
      RUNPOD_WEBHOOK_GET_JOB: `${base}/job-take/$ID?gpu=none`,
      RUNPOD_WEBHOOK_POST_OUTPUT: `${base}/job-done/$RUNPOD_POD_ID/$ID?gpu=none`,
      RUNPOD_WEBHOOK_POST_STREAM: `${base}/job-stream/$RUNPOD_POD_ID/$ID?gpu=none`,
      RUNPOD_WEBHOOK_PING: `${base}/ping/$RUNPOD_POD_ID?gpu=none`,
      ...variables,
    };
  }

  submit(input: unknown, extra: Record<string, unknown> = {}): FakeJob {
    this.#number += 1;
    const job: FakeJob = {
      id: `job-${this.#number}`,
      input,
      extra,
      state: 'waiting',
      lease: '',
      timesTaken: 0,
      progress: [],
      chunks: [],
      chunkNumber: 0,
      results: [],
    };
    this.jobs.set(job.id, job);
    this.dispatch();
    return job;
  }

  cancel(job: FakeJob): void {
    job.state = 'cancelled';
    for (const channel of this.channels) channel.send(`X ${job.id}`);
    for (const stop of this.#stops) this.#tell(stop, { jobsToStop: [job.id] });
  }

  /** The result of a job, as soon as there is one. */
  async result(job: FakeJob): Promise<FakeJobResult> {
    await this.waitFor(() => job.results.length > 0);
    return job.results[0] as FakeJobResult;
  }

  /** Resolves when something that the worker did makes it true. */
  waitFor(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!condition()) return;
        this.#watchers.delete(look);
        resolve();
      };
      this.#watchers.add(look);
      look();
    });
  }

  count(...what: string[]): number {
    return this.received.filter((said) => what.includes(said.operation)).length;
  }

  // What the two ways have in common.

  receive(said: ReceivedMessage): void {
    this.received.push(said);
    this.notifyWatchers();
  }

  notifyWatchers(): void {
    for (const look of [...this.#watchers]) look();
  }

  /** Late and repeated results change nothing. */
  finish(job: FakeJob | undefined, result: FakeJobResult): void {
    if (job?.state === 'given') {
      job.state = 'ended';
      job.results.push(result);
    }
    this.notifyWatchers();
  }

  /** A chunk whose number was there is a repeat. */
  addChunk(job: FakeJob | undefined, output: unknown, number: number | undefined): void {
    if (job === undefined || (number !== undefined && number <= job.chunkNumber)) return;
    job.chunkNumber = number ?? job.chunkNumber;
    job.chunks.push(output);
  }

  dispatch(): void {
    for (const take of [...this.#takes]) {
      const given = this.#next(take.capacity);
      if (given.length > 0) this.#tell(take, take.capacity === 1 ? given[0] : given);
    }
    for (const channel of this.channels) {
      for (const job of this.#next(channel.credits)) channel.sendJob(String(job['id']), job);
    }
    this.notifyWatchers();
  }

  #next(room: number): Record<string, unknown>[] {
    return [...this.jobs.values()]
      .filter(({ state }) => state === 'waiting')
      .slice(0, room)
      .map((job) => {
        job.state = 'given';
        job.timesTaken += 1;
        job.lease = `lease-${job.id}-${job.timesTaken}`;
        return { id: job.id, input: job.input, ...job.extra };
      });
  }

  #tell(heldPolls: HeldPoll, body: unknown): void {
    this.#takes.delete(heldPolls);
    this.#stops.delete(heldPolls);
    heldPolls.response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const [what, workerId] = this.#recordRequest(request, '');
    const status = this.fault(what, undefined);
    // A worker that reads a refusal lets go of its side at once.
    socket.on('error', () => socket.destroy());
    if (status === NO_RESPONSE) return;
    if (status === CLOSE_CONNECTION) socket.destroy();
    else if (
      !this.offersChannel ||
      status !== undefined ||
      request.headers.upgrade !== 'berth-worker/1' ||
      request.headers.authorization !== KEY
    ) {
      socket.end(`HTTP/1.1 ${status ?? 404} No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
    } else {
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: berth-worker/1\r\n` +
          `${this.acceptsReturns ? 'Berth-Takes-Back: yes\r\n' : ''}${this.acknowledgesNumberedChunks ? 'Berth-Keeps-Chunks: yes\r\n' : ''}${this.answersHeartbeats === undefined ? '' : 'Berth-Answers: yes\r\n'}\r\n`,
      );
      this.channels.add(new FakePlatformChannel(this, workerId, socket, head));
    }
  }

  #recordRequest(
    request: IncomingMessage,
    text: string,
  ): [what: string, workerId: string, jobId: string | undefined, query: URLSearchParams] {
    const url = new URL(request.url ?? '', 'http://server');
    const [, , endpoint, what = '', workerId = '', jobId] = url.pathname.split('/');
    if (endpoint !== ENDPOINT) throw new Error(`a wrong address: ${request.url}`);
    this.receive({
      operation: what,
      receivedAt: Date.now(),
      query: url.searchParams,
      headers: request.headers,
      text,
    });
    return [what, workerId, jobId, url.searchParams];
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const text = Buffer.concat(pieces).toString();
    const [what, workerId, jobId, query] = this.#recordRequest(request, text);
    const fault = request.headers.authorization === KEY ? this.fault(what, jobId) : 401;
    if (fault === NO_RESPONSE) return;
    if (fault === CLOSE_CONNECTION) request.socket.destroy();
    else if (fault !== undefined && fault >= 400)
      response.writeHead(fault, { 'content-type': 'application/json' }).end('{"error":"it was told to"}');
    else if (fault !== undefined) response.writeHead(fault).end();
    else if (what === 'job-take' || what === 'job-take-batch')
      this.#hold(this.#takes, { workerId, capacity: Number(query.get('batch_size') ?? 1), response });
    else if (what === 'job-stop') this.#hold(this.#stops, { workerId, capacity: 0, response });
    else {
      if (what !== 'ping')
        this.#post(
          what,
          this.jobs.get(jobId ?? ''),
          JSON.parse(text) as Record<string, unknown>,
          query.get('isStream'),
          request.headers['berth-chunk'],
        );
      response.writeHead(200).end();
    }
  }

  #hold(among: Set<HeldPoll>, held: HeldPoll): void {
    among.add(held);
    held.response.on('close', () => {
      among.delete(held);
      this.notifyWatchers();
    });
    this.dispatch();
    if (this.holdsEmptyPolls || !among.delete(held)) return;
    held.response.writeHead(204).end();
  }

  /** Questions that wait for an answer. */
  get held(): number {
    return this.#takes.size + this.#stops.size;
  }

  #post(
    what: string,
    job: FakeJob | undefined,
    body: Record<string, unknown>,
    isStream: string | null,
    mark?: string | string[],
  ): void {
    if (what === 'job-stream')
      this.addChunk(job, body['output'], mark === undefined ? undefined : Number(String(mark).split('~')[1]));
    else if (body['status'] === 'IN_PROGRESS') job?.progress.push(body['output']);
    else this.finish(job, { body, transport: 'http', isStream: isStream === 'true' });
    this.notifyWatchers();
  }
}
