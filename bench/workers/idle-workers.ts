import { HttpConnection } from '../support/http-connection.ts';
import type { BenchWorker, WorkerOptions } from './worker-messages.ts';

/** Connections are opened this many at a time, to stay below what a listening socket queues. */
const CONNECT_BATCH = 100;

/** Many idle workers in one process: each waits for one job at a time on a connection of its own. */
export async function startIdleWorkers({
  target,
  key = '',
  queue,
  workerId,
  concurrency,
  pollsCancellations = false,
}: WorkerOptions): Promise<BenchWorker> {
  const base = `/v2/${queue}`;
  const connections: HttpConnection[] = [];
  let done = 0;
  let stopping = false;

  async function open(): Promise<HttpConnection> {
    const connection = new HttpConnection(target, key);
    await connection.opened;
    connections.push(connection);
    return connection;
  }

  async function work(connection: HttpConnection, name: string): Promise<void> {
    while (!stopping) {
      const { status, body } = await connection.request(
        'GET',
        `${base}/job-take/${name}?gpu=none&job_in_progress=0`,
      );
      if (status === 204) continue;
      if (status !== 200) throw new Error(`job-take answered ${status} ${body}`);
      const { id } = JSON.parse(body) as { id: string };
      await connection.request(
        'POST',
        `${base}/job-done/${name}/${id}?gpu=none&isStream=false`,
        '{"output":{"ok":true}}',
      );
      done += 1;
    }
  }

  async function listen(connection: HttpConnection, name: string): Promise<void> {
    while (!stopping) await connection.request('GET', `${base}/job-stop/${name}?gpu=none`);
  }

  const begin: (() => Promise<void>)[] = [];
  for (let opened = 0; opened < concurrency; opened += CONNECT_BATCH) {
    await Promise.all(
      Array.from({ length: Math.min(CONNECT_BATCH, concurrency - opened) }, async (_, index) => {
        const name = `${workerId}-${opened + index}`;
        const taking = await open();
        begin.push(() => work(taking, name));
        if (!pollsCancellations) return;
        const listening = await open();
        begin.push(() => listen(listening, name));
      }),
    );
  }
  return {
    get done() {
      return done;
    },
    start: () => {
      for (const loop of begin) {
        loop().catch((error: unknown) => {
          if (!stopping) throw error;
        });
      }
    },
    stop: async () => {
      stopping = true;
      for (const connection of connections) connection.close();
    },
  };
}
