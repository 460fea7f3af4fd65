import type { WorkerMessage, WorkerCommand, Role, BenchWorker, WorkerOptions } from './worker-messages.ts';

/**
 * A worker process of the bench. It can play any role, so that one set of processes serves every queue in
 * turn.
 */
const REPORT_EVERY_MS = 10;

let session: BenchWorker | undefined;
let reportTimer: NodeJS.Timeout | undefined;
let lastReported = 0;

async function prepare(role: Role, options: WorkerOptions): Promise<BenchWorker> {
  switch (role) {
    case 'public':
      return (await import('./public-worker.ts')).publicWorker(options);
    case 'channel':
      return (await import('./channel-worker.ts')).channelWorker(options);
    case 'idle':
      return (await import('./idle-workers.ts')).startIdleWorkers(options);
    case 'bullmq':
      return (await import('./bullmq-worker.ts')).bullmqWorker(options);
    case 'graphile':
      return (await import('./graphile-worker.ts')).graphileWorker(options);
    case 'pgboss':
      return (await import('./pg-boss-worker.ts')).pgBossWorker(options);
  }
}

async function handleCommand(order: WorkerCommand): Promise<void> {
  switch (order.order) {
    case 'prepare':
      session = await prepare(order.role, order.options);
      lastReported = 0;
      return sendMessage({ note: 'ready' });
    case 'start':
      if (order.reportsProgress) reportTimer = setInterval(reportDone, REPORT_EVERY_MS);
      return session?.start();
    case 'stop':
      clearInterval(reportTimer);
      await session?.stop();
      session = undefined;
      return sendMessage({ note: 'stopped' });
  }
}

function reportDone(): void {
  if (session === undefined || session.done === lastReported) return;
  lastReported = session.done;
  sendMessage({ note: 'done', done: lastReported, at: performance.timeOrigin + performance.now() });
}

function sendMessage(note: WorkerMessage): void {
  process.send?.(note);
}

process.on('message', (order: WorkerCommand) => {
  handleCommand(order).catch((error: unknown) =>
    sendMessage({
      note: 'failed',
      why: error instanceof Error ? (error.stack ?? error.message) : String(error),
    }),
  );
});
process.on('disconnect', () => process.exit(0));
