import type { Note, Order, Role, Session, WorkerOptions } from './session.ts';

/** A worker process of the bench. It can play any role, so that one set of processes serves every queue in turn. */
const TELL_EVERY_MS = 10;

let session: Session | undefined;
let telling: NodeJS.Timeout | undefined;
let told = 0;

async function prepare(role: Role, options: WorkerOptions): Promise<Session> {
  switch (role) {
    case 'public':
      return (await import('./public.ts')).publicWorker(options);
    case 'channel':
      return (await import('./channel.ts')).channelWorker(options);
    case 'crowd':
      return (await import('./crowd.ts')).crowdWorker(options);
    case 'bullmq':
      return (await import('./bullmq.ts')).bullmqWorker(options);
    case 'graphile':
      return (await import('./graphile.ts')).graphileWorker(options);
    case 'pgboss':
      return (await import('./pg-boss.ts')).pgBossWorker(options);
  }
}

async function obey(order: Order): Promise<void> {
  switch (order.order) {
    case 'prepare':
      session = await prepare(order.role, order.options);
      told = 0;
      return tell({ note: 'ready' });
    case 'start':
      if (order.tells) telling = setInterval(tellDone, TELL_EVERY_MS);
      return session?.start();
    case 'stop':
      clearInterval(telling);
      await session?.stop();
      session = undefined;
      return tell({ note: 'stopped' });
  }
}

function tellDone(): void {
  if (session === undefined || session.done === told) return;
  told = session.done;
  tell({ note: 'done', done: told, at: performance.timeOrigin + performance.now() });
}

function tell(note: Note): void {
  process.send?.(note);
}

process.on('message', (order: Order) => {
  obey(order).catch((error: unknown) =>
    tell({ note: 'failed', why: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
process.on('disconnect', () => process.exit(0));
