import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Not that of the public Python SDK: a worker of that name may get several short jobs in one answer to
 * job-take, and these read one.
 */
const USER_AGENT = 'berth-test-worker/1.12.0 (Linux 6.1; x86_64)';

export interface WorkerTarget {
  url: string;
  endpointId: string;
  workerId: string;
  key: string;
}

export interface WorkerResponse<T = Record<string, unknown>> {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  body: T;
}

/** A job as its handler sees it. */
export interface TakenJob {
  id: string;
  input: unknown;
  [key: string]: unknown;
}

export interface PollOptions {
  /** The worker reports that it runs something. */
  busy?: boolean;
  signal?: AbortSignal;
}

/** A worker that follows the public protocol exactly; the test makes each request. */
export interface PublicProtocolWorker extends WorkerTarget {
  send<T = Record<string, unknown>>(
    method: string,
    path: string,
    options?: { body?: string; headers?: Record<string, string>; signal?: AbortSignal | undefined },
  ): Promise<WorkerResponse<T>>;
  /** One long poll for a single job. */
  poll(options?: PollOptions): Promise<WorkerResponse<TakenJob>>;
  pollBatch(size: number, options?: PollOptions): Promise<WorkerResponse<TakenJob[]>>;
  /** The next job, polling until there is one. */
  take(): Promise<TakenJob>;
  /** Posts a final result; a text goes out as it is. */
  done(jobId: string, body: unknown, isStream?: boolean): Promise<WorkerResponse>;
  progress(jobId: string, value: unknown): Promise<WorkerResponse>;
  chunk(jobId: string, body: unknown): Promise<WorkerResponse>;
  stops(signal?: AbortSignal): Promise<WorkerResponse<{ jobsToStop: string[] }>>;
  ping(jobIds?: readonly string[], query?: string): Promise<WorkerResponse>;
  /** Takes and runs jobs until it is stopped, as many at once as its concurrency says. */
  startWorkLoop(handler: (job: TakenJob) => unknown, concurrency?: number): WorkLoop;
  close(): void;
}

export interface WorkLoop {
  /** Takes nothing more, ends what it runs, and resolves. */
  stop(): Promise<void>;
}

export function createPublicProtocolWorker(place: WorkerTarget): PublicProtocolWorker {
  const { url, endpointId, workerId, key } = place;
  const agent = new Agent({ keepAlive: true });
  const base = `${url}/v2/${endpointId}`;

  const send: PublicProtocolWorker['send'] = async (method, path, { body, headers = {}, signal } = {}) => {
    const outgoing = request(`${base}/${path}`, {
      method,
      agent,
      ...(signal !== undefined && { signal }),
      headers: {
        authorization: key,
        'user-agent': USER_AGENT,
        accept: '*/*',
        'accept-encoding': 'gzip, deflate',
        ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
        ...headers,
      },
    });
    outgoing.end(body);
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) text += String(chunk);
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      text,
      body: (text === '' ? undefined : JSON.parse(text)) as never,
    };
  };
  const get = <T>(path: string, signal?: AbortSignal): Promise<WorkerResponse<T>> =>
    send<T>('GET', path, { headers: { 'content-type': 'application/json' }, signal });
  /** The body is JSON, whatever the content type says. */
  const post = (path: string, jobId: string, body: unknown): Promise<WorkerResponse> =>
    send('POST', path, {
      body: typeof body === 'string' ? body : JSON.stringify(body),
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        charset: 'utf-8',
        'x-request-id': jobId,
      },
    });

  const worker: PublicProtocolWorker = {
    ...place,
    send,
    poll: ({ busy = false, signal } = {}) =>
      get(`job-take/${workerId}?gpu=none&job_in_progress=${busy ? 1 : 0}`, signal),
    pollBatch: (size, { busy = false, signal } = {}) =>
      get(`job-take-batch/${workerId}?gpu=none&batch_size=${size}&job_in_progress=${busy ? 1 : 0}`, signal),
    take: async () => {
      for (;;) {
        const { status, body, text } = await worker.poll();
        if (status === 200) return body;
        if (status !== 204) throw new Error(`job-take answered ${status} ${text}`);
      }
    },
    done: (jobId, body, isStream = false) =>
      post(`job-done/${workerId}/${jobId}?gpu=none&isStream=${isStream}`, jobId, body),
    progress: (jobId, value) =>
      post(`job-done/${workerId}/${jobId}?gpu=none&isStream=false`, jobId, {
        status: 'IN_PROGRESS',
        output: value,
      }),
    chunk: (jobId, body) => post(`job-stream/${workerId}/${jobId}?gpu=none&isStream=false`, jobId, body),
    stops: (signal) => get(`job-stop/${workerId}?gpu=none`, signal),
    ping: (jobIds = [], query = '') =>
      send(
        'GET',
        `ping/${workerId}?gpu=none${jobIds.length === 0 ? '' : `&job_id=${jobIds.join('%2C')}`}&runpod_version=1.12.0${query}`,
        { headers: { 'user-agent': 'python-requests/2.34.2' } },
      ),
    startWorkLoop: (handler, concurrency = 1) => startWorkLoop(worker, handler, concurrency),
    close: () => agent.destroy(),
  };
  return worker;
}

function startWorkLoop(
  worker: PublicProtocolWorker,
  handler: (job: TakenJob) => unknown,
  concurrency: number,
): WorkLoop {
  const leaving = new AbortController();
  const running = new Set<Promise<void>>();
  const runOne = async (job: TakenJob): Promise<void> => {
    let body: Record<string, unknown>;
    try {
      body = { output: await handler(job) };
    } catch (error) {
      body = { error: String(error) };
    }
    await worker.done(job.id, body);
  };
  const loop = async (): Promise<void> => {
    while (!leaving.signal.aborted) {
      if (running.size >= concurrency) {
        await Promise.race(running);
        continue;
      }
      const options = { busy: running.size > 0, signal: leaving.signal };
      const reply = await (concurrency === 1
        ? worker.poll(options)
        : worker.pollBatch(concurrency - running.size, options)
      ).catch((error: unknown) => {
        if (!leaving.signal.aborted) throw error;
      });
      if (reply?.status !== 200) continue;
      for (const job of [reply.body].flat()) {
        const run = runOne(job).finally(() => running.delete(run));
        running.add(run);
      }
    }
    await Promise.all(running);
  };
  const looping = loop();
  return {
    stop: async () => {
      leaving.abort();
      await looping;
      worker.close();
    },
  };
}

/** A worker on the fast channel: lines as they are, sent and read by hand. */
export interface ChannelWorker extends WorkerTarget {
  socket: Socket;
  /** Sends lines, in one packet. */
  send(...lines: string[]): void;
  /** The next line of this letter that was not read yet, its letter and space cut off. */
  next(letter: string): Promise<string>;
  /** The next job, with its lease. */
  job(): Promise<{ lease: string; job: TakenJob; text: string }>;
  /** Lines that have come and were not read. */
  unread(letter: string): string[];
  /** Resolves when the other side has closed. */
  closed: Promise<void>;
  close(): void;
}

/** Opens the channel; answers the refusal's status line where there is one. */
export async function openChannel(place: WorkerTarget): Promise<ChannelWorker | { refused: string }> {
  const { url, endpointId, workerId, key } = place;
  const outgoing = request(`${url}/v2/${endpointId}/job-channel/${workerId}?gpu=none`, {
    agent: false,
    headers: { connection: 'Upgrade', upgrade: 'berth-worker/1', authorization: key },
  });
  outgoing.end();
  const refused = once(outgoing, 'response').then(([response]) => response as IncomingMessage);
  const opened = once(outgoing, 'upgrade') as Promise<[IncomingMessage, Socket, Buffer]>;
  void Promise.allSettled([refused, opened]);
  const answer = await Promise.race([refused, opened]);
  if (!Array.isArray(answer)) {
    answer.resume();
    return { refused: `${answer.statusCode} ${answer.statusMessage}` };
  }
  const [, socket, head] = answer;
  return channelWorkerOver(place, socket, head);
}

/** Opens it where nothing is in the way. */
export async function openChannelOrFail(place: WorkerTarget): Promise<ChannelWorker> {
  const channel = await openChannel(place);
  assert.ok(!('refused' in channel));
  return channel;
}

/**
 * What the server still has to say is said: a result that is acknowledged comes after everything before it.
 */
export async function flushChannel(channel: ChannelWorker): Promise<void> {
  channel.send('D nonsense none {}');
  assert.equal(await channel.next('A'), 'nonsense none');
}

function channelWorkerOver(place: WorkerTarget, socket: Socket, head: Buffer): ChannelWorker {
  const lines: string[] = [];
  let rest = '';
  const waiting = new Set<() => void>();
  const wake = (): void => waiting.forEach((resolve) => resolve());
  const read = (text: string): void => {
    const parts = (rest + text).split('\n');
    rest = parts.pop() ?? '';
    lines.push(...parts);
    wake();
  };
  socket.setEncoding('utf8').on('data', (text: string) => read(text));
  socket.on('error', () => socket.destroy());
  if (head.length > 0) read(head.toString());
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  let ended = false;
  void closed.then(() => {
    ended = true;
    wake();
  });
  const next = async (letter: string): Promise<string> => {
    for (;;) {
      const at = lines.findIndex((line) => line.charAt(0) === letter);
      if (at !== -1) return lines.splice(at, 1)[0]?.slice(2) ?? '';
      if (ended) throw new Error(`the channel closed before a line ${letter} came`);
      await new Promise<void>((resolve) => waiting.add(resolve));
      waiting.clear();
    }
  };
  return {
    ...place,
    socket,
    send: (...sent) => void socket.write(`${sent.join('\n')}\n`),
    next,
    job: async () => {
      const line = await next('J');
      const space = line.indexOf(' ');
      const text = line.slice(space + 1);
      return { lease: line.slice(0, space), job: JSON.parse(text) as TakenJob, text };
    },
    unread: (letter) => lines.filter((line) => line.charAt(0) === letter),
    closed,
    close: () => void socket.destroy(),
  };
}
