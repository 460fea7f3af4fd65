import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { HttpConnection } from '../support/http-connection.ts';
import type { FloodPlan, FloodTarget } from './flood-plan.ts';

/** Connections are opened this many at a time, to stay below what a listening socket queues. */
const CONNECT_BATCH = 250;
/** Idle connections ask again before the server closes them. */
const ASK_AGAIN_MS = 50_000;
const SLOW_BYTE_MS = 1_000;
/** One half fits the fast path, the other half is read by Node. */
const SLOW_BODY_BYTES = [100_000, 1_000_000];
const CHUNK_MS = 1_000;

/** Everybody who is connected at the same time, and what became of them. */
export class BackgroundClients {
  readonly #plan: FloodPlan;
  readonly #closed = { connections: 0, slowBodies: 0, streams: 0 };
  #streamBytes = 0;
  #refusedChunks = 0;

  constructor(plan: FloodPlan) {
    this.#plan = plan;
  }

  async start(): Promise<void> {
    const { connections, slowBodies, streams } = this.#plan;
    await inBatches(connections, (index) => this.#openIdle(index));
    await inBatches(slowBodies, (index) => this.#openSlowBody(index));
    const jobs = await Promise.all(this.#plan.background.map((target) => this.#startJob(target)));
    await inBatches(streams, (index) => this.#openStream(index, jobs));
  }

  toString(): string {
    const { connections, slowBodies, streams } = this.#plan;
    const { connections: idle, slowBodies: slow, streams: ended } = this.#closed;
    return (
      `${connections - idle} connections, ${slowBodies - slow} slow bodies and ${streams - ended} ` +
      `streams still open, ${(this.#streamBytes / 1e6).toFixed(1)} MB streamed, ` +
      `${this.#refusedChunks} chunks refused`
    );
  }

  #target(index: number): FloodTarget {
    return this.#plan.background[index % this.#plan.background.length] as FloodTarget;
  }

  async #openIdle(index: number): Promise<void> {
    const { key, endpointId } = this.#target(index);
    const connection = new HttpConnection(this.#plan.url, `Bearer ${key}`);
    const ask = async (): Promise<void> => {
      const { status, body } = await connection.request('GET', `/v2/${endpointId}/health`);
      if (status !== 200) throw new Error(`health answers ${status} ${body}`);
    };
    await ask();
    const timer = setInterval(() => {
      ask().catch(() => {
        clearInterval(timer);
        this.#closed.connections += 1;
      });
    }, ASK_AGAIN_MS);
  }

  async #openSlowBody(index: number): Promise<void> {
    const { key, endpointId } = this.#target(index);
    const length = SLOW_BODY_BYTES[index % SLOW_BODY_BYTES.length];
    const socket = await this.#send(
      `POST /v2/${endpointId}/run HTTP/1.1\r\nhost: berth\r\nauthorization: Bearer ${key}\r\n` +
        `content-type: application/json\r\ncontent-length: ${length}\r\n\r\n{"input":"`,
    );
    const timer = setInterval(() => socket.write('x'), SLOW_BYTE_MS);
    socket.resume().once('close', () => {
      clearInterval(timer);
      this.#closed.slowBodies += 1;
    });
  }

  async #openStream(index: number, jobs: string[]): Promise<void> {
    const { key, endpointId } = this.#target(index);
    const socket = await this.#send(
      `GET /v2/${endpointId}/stream/${jobs[index % jobs.length]} HTTP/1.1\r\nhost: berth\r\n` +
        `authorization: Bearer ${key}\r\naccept: text/event-stream\r\n\r\n`,
    );
    socket.on('data', (bytes) => (this.#streamBytes += bytes.length));
    socket.once('close', () => (this.#closed.streams += 1));
  }

  /** A job that runs without end and has news every second. */
  async #startJob({ key, endpointId }: FloodTarget): Promise<string> {
    const connection = new HttpConnection(this.#plan.url, `Bearer ${key}`);
    const call = async (method: string, path: string, body?: string): Promise<string> => {
      const answer = await connection.request(method, `/v2/${endpointId}/${path}`, body);
      if (answer.status !== 200) throw new Error(`${path} answers ${answer.status} ${answer.body}`);
      return answer.body;
    };
    const { id } = JSON.parse(await call('POST', 'run', '{"input":{}}')) as { id: string };
    await call('GET', 'job-take/background?gpu=none&job_in_progress=0');
    let chunk = 0;
    const post = async (): Promise<void> => {
      chunk += 1;
      await call(
        'POST',
        `job-stream/background/${id}?gpu=none`,
        JSON.stringify({ output: `chunk ${chunk}` }),
      );
      await call('GET', `ping/background?gpu=none&job_id=${id}`);
    };
    const postEverySecond = (): void => {
      setTimeout(() => {
        void post()
          .catch(() => (this.#refusedChunks += 1))
          .then(postEverySecond);
      }, CHUNK_MS);
    };
    await post();
    postEverySecond();
    return id;
  }

  async #send(text: string): Promise<Socket> {
    const { hostname, port } = new URL(this.#plan.url);
    const socket = connect(Number(port), hostname);
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    socket.on('error', () => socket.destroy());
    socket.write(text);
    return socket;
  }
}

async function inBatches(count: number, open: (index: number) => Promise<void>): Promise<void> {
  for (let from = 0; from < count; from += CONNECT_BATCH)
    await Promise.all(
      Array.from({ length: Math.min(CONNECT_BATCH, count - from) }, (_, index) => open(from + index)),
    );
}
