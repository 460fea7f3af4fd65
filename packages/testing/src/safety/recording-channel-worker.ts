import { request } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { LineReader } from '../../../cloud/src/http/workers/line-reader.ts';
import type { RecordingWorker, RecordingWorkerOptions } from './recording-public-worker.ts';
import { runAttempt } from './job-attempt.ts';
import type { TakenJob } from './job-attempt.ts';

const AGAIN_MS = 30;
const PROTOCOL = 'berth-worker/1';

export interface RecordingChannelWorkerOptions extends RecordingWorkerOptions {
  /** Leaves a connection after about this long and takes another one, as behind a load balancer. */
  reconnectAfter?: () => number;
  /**
   * Its chunks have numbers and are acknowledged. False: a worker of before there were any. Default: true.
   */
  numbersChunks?: boolean;
}

/** A small worker over the fast channel. What was not acknowledged is said again on the next connection. */
export function startRecordingChannelWorker(options: RecordingChannelWorkerOptions): RecordingWorker {
  const {
    server,
    endpointId,
    workerId,
    key,
    concurrency,
    pingEvery,
    runName,
    report,
    numbersChunks = true,
  } = options;
  /** By job: the last attempt at it that has not ended. */
  const running = new Map<string, Promise<void>>();
  /** Results that wait for their acknowledgement, by job and lease. */
  const unacknowledged = new Map<string, { line: string; done: () => void }>();
  /** Chunks that wait for theirs, in the order in which they were made. */
  const unkept = new Set<{ name: string; number: number; line: string; done: (kept: boolean) => void }>();
  let count = 0;
  let stopping = false;
  let socket: Duplex | undefined;

  const write = (...lines: string[]): boolean => {
    if (socket === undefined || socket.destroyed || lines.length === 0) return false;
    socket.write(lines.map((line) => `${line}\n`).join(''));
    return true;
  };
  const list = (): string => `L ${[...running.keys()].join(',')}`;

  const keep = (name: string, number: number, text: string): Promise<boolean> =>
    new Promise((done) => {
      const line = `S ${name}~${number} ${text}`;
      unkept.add({ name, number, line, done });
      write(line);
    });

  const work = (lease: string, job: TakenJob): void => {
    const marker = `${runName ?? workerId}/${++count}`;
    let chunks = 0;
    const line = {
      progress: async (output: unknown) => void write(`P ${job.id} ${lease} ${JSON.stringify(output)}`),
      chunk: async (chunk: unknown) => {
        if (numbersChunks) return keep(`${job.id} ${lease}`, ++chunks, JSON.stringify(chunk));
        write(`S ${job.id} ${lease} ${JSON.stringify(chunk)}`);
        return false;
      },
      result: (body: unknown) =>
        new Promise<void>((done) => {
          const said = `D ${job.id} ${lease} ${JSON.stringify(body)}`;
          unacknowledged.set(`${job.id} ${lease}`, { line: said, done });
          write(said);
        }),
    };
    const ended = runAttempt(job, marker, line, report).finally(() => {
      if (running.get(job.id) === ended) running.delete(job.id);
      write('T 1');
    });
    running.set(job.id, ended);
  };

  const understand = (line: string): void => {
    const rest = line.slice(2);
    switch (line.charAt(0)) {
      case 'J': {
        const space = rest.indexOf(' ');
        return work(rest.slice(0, space), JSON.parse(rest.slice(space + 1)) as TakenJob);
      }
      case 'A': {
        const waiting = unacknowledged.get(rest);
        unacknowledged.delete(rest);
        return waiting?.done();
      }
      case 'K': {
        const space = rest.lastIndexOf(' ');
        for (const chunk of unkept) {
          if (chunk.name !== rest.slice(0, space) || chunk.number > Number(rest.slice(space + 1))) continue;
          unkept.delete(chunk);
          chunk.done(true);
        }
        return;
      }
      case 'G':
        socket?.end();
        return;
      // A stopped job ends by itself here, and its late result must change nothing.
      case 'X':
        return;
      case 'H':
        return;
      default:
        throw new Error(`not of the protocol: ${line.slice(0, 40)}`);
    }
  };

  const serve = async (connection: Duplex): Promise<void> => {
    const lines = new LineReader(1024 * 1024);
    connection.on('data', (bytes: Buffer) => lines.read(bytes).forEach(understand));
    connection.on('error', () => connection.destroy());
    const closed = new Promise<void>((resolve) => connection.on('close', () => resolve()));
    socket = connection;
    const free = concurrency - running.size;
    write(
      list(),
      ...[...unkept].map(({ line }) => line),
      ...[...unacknowledged.values()].map(({ line }) => line),
      ...(stopping || free <= 0 ? [] : [`T ${free}`]),
    );
    const beat = setInterval(() => write(list()), pingEvery);
    const move =
      options.reconnectAfter === undefined
        ? undefined
        : setTimeout(() => connection.destroy(), options.reconnectAfter());
    await closed;
    clearInterval(beat);
    clearTimeout(move);
    socket = undefined;
  };

  const keepConnected = async (): Promise<void> => {
    while (!stopping) {
      const connection = await connect(`${server()}/v2/${endpointId}/job-channel/${workerId}?x=1`, key);
      if (connection === undefined) await pause(AGAIN_MS);
      else await serve(connection);
    }
  };

  const connected = keepConnected();
  return {
    stop: async () => {
      stopping = true;
      for (const { done } of unkept) done(false);
      for (const { done } of unacknowledged.values()) done();
      socket?.destroy();
      await connected;
    },
  };
}

function connect(url: string, key: string): Promise<Duplex | undefined> {
  return new Promise((resolve) => {
    const asked = request(url, {
      headers: { connection: 'Upgrade', upgrade: PROTOCOL, authorization: key },
      agent: false,
    });
    asked.on('upgrade', (_response, connection, head) => {
      if (head.length > 0) connection.unshift(head);
      resolve(connection);
    });
    asked.on('response', (response) => {
      response.resume();
      resolve(undefined);
    });
    asked.on('error', () => resolve(undefined));
    asked.end();
  });
}
