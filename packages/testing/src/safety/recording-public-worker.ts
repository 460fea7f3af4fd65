import { setTimeout as pause } from 'node:timers/promises';
import { callHttp } from './http-call.ts';
import type { HttpReply } from './http-call.ts';
import type { HistoryEvent } from './job-history.ts';
import { runAttempt } from './job-attempt.ts';
import type { TakenJob } from './job-attempt.ts';

const AGAIN_MS = 30;

export interface RecordingWorkerOptions {
  /** The address of a server that is up, as far as anyone knows. */
  server(): string;
  endpointId: string;
  workerId: string;
  key: string;
  concurrency: number;
  pingEvery: number;
  /** Names this run of the worker in its outputs, where one name is used again. */
  runName?: string;
  report(event: HistoryEvent): void;
}

/** A worker: until it is stopped. */
export interface RecordingWorker {
  stop(): Promise<void>;
}

/**
 * A small worker over the public protocol: takes by long polls, one request for each chunk and result, pings.
 */
export function startRecordingPublicWorker({
  server,
  endpointId,
  workerId,
  key,
  concurrency,
  pingEvery,
  runName,
  report,
}: RecordingWorkerOptions): RecordingWorker {
  const gone = new AbortController();
  /** By job: the last attempt at it that has not ended. */
  const running = new Map<string, Promise<void>>();
  let count = 0;

  const send = (
    method: string,
    path: string,
    body?: unknown,
    signal?: AbortSignal,
  ): Promise<HttpReply | undefined> =>
    callHttp({
      method,
      url: `${server()}/v2/${endpointId}/${path}`,
      authorization: key,
      body,
      ...(signal !== undefined && { signal }),
    });

  const work = (job: TakenJob): void => {
    const marker = `${runName ?? workerId}/${++count}`;
    const line = {
      progress: async (output: unknown) =>
        void (await send('POST', `job-done/${workerId}/${job.id}?x=1&isStream=false`, {
          status: 'IN_PROGRESS',
          output,
        })),
      chunk: async (chunk: unknown) =>
        (await send('POST', `job-stream/${workerId}/${job.id}?x=1&isStream=false`, chunk))?.status === 200,
      result: async (body: unknown) => {
        while (
          (await send('POST', `job-done/${workerId}/${job.id}?x=1&isStream=false`, body))?.status !== 200 &&
          !gone.signal.aborted
        )
          await pause(AGAIN_MS);
      },
    };
    const ended = runAttempt(job, marker, line, report).finally(() => {
      if (running.get(job.id) === ended) running.delete(job.id);
    });
    running.set(job.id, ended);
  };

  const take = async (): Promise<void> => {
    while (!gone.signal.aborted) {
      const room = concurrency - running.size;
      if (room <= 0) {
        await Promise.race(running.values());
        continue;
      }
      const idle = running.size === 0 ? 0 : 1;
      const path =
        room === 1
          ? `job-take/${workerId}?x=1&job_in_progress=${idle}`
          : `job-take-batch/${workerId}?x=1&batch_size=${room}&job_in_progress=${idle}`;
      const reply = await send('GET', path, undefined, gone.signal);
      if (reply?.status === 200)
        for (const job of Array.isArray(reply.body) ? (reply.body as TakenJob[]) : [reply.body as TakenJob])
          work(job);
      else if (reply?.status !== 204) await pause(AGAIN_MS);
    }
  };

  const ping = async (): Promise<void> => {
    while (!gone.signal.aborted) {
      await send(
        'GET',
        `ping/${workerId}?x=1&job_id=${[...running.keys()].join('%2C')}`,
        undefined,
        gone.signal,
      );
      await pause(pingEvery, undefined, { signal: gone.signal }).catch(() => undefined);
    }
  };

  const loops = [take(), ping()];
  return {
    stop: async () => {
      gone.abort();
      await Promise.all(loops);
      await Promise.all(running.values());
    },
  };
}
