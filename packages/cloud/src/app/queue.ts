import { JobQueue } from '../queue/job-queue.ts';
import { QueueAdmission } from '../queue/queue-admission.ts';
import type { AccountDirectory } from '../resources/accounts/account-directory.ts';
import { RequestCredentials } from '../queue/request-credentials.ts';
import { Sealer } from '../support/crypto.ts';
import { JobReaperLoop } from '../queue/job-reaper-loop.ts';
import { WebhookDeliveries } from '../queue/webhooks/webhook-deliveries.ts';
import { deliveryOf } from '../queue/webhooks/webhook-delivery.ts';
import { webhookSenderOptions } from '../queue/webhooks/webhook-options.ts';
import { WebhookSender } from '../queue/webhooks/webhook-sender.ts';
import { webhookSecret } from '../queue/webhooks/webhook-signature.ts';
import type { JobTracing } from '../domain/tracing.ts';
import type { AppContext } from './app-context.ts';
import type { Storage } from './storage.ts';
import { sharedRates } from './shared-rates.ts';

/** The job queue with its reaper, and the webhooks of ended jobs. */
export interface Queue {
  queue: JobQueue;
  webhooks: WebhookDeliveries;
  webhookSender: WebhookSender;
  /** What the webhooks of an account are signed with. */
  webhookSecretFor(accountId: string): string;
  /** Keeps accounts within the limits of what they may queue. */
  limitBy(directory: AccountDirectory): void;
  start(): void;
  close(): Promise<void>;
}

export async function createQueue(
  { config, log, clock, ids, events, disk }: AppContext,
  { store, masterKey }: Storage,
  tracing?: JobTracing,
): Promise<Queue> {
  /** PostgreSQL has a disk of its own. */
  const isOnDisk = config.database === '';
  const webhookSecretFor = (accountId: string): string => webhookSecret(masterKey, accountId);
  const webhookSender = new WebhookSender({
    store: store.jobs,
    clock,
    log,
    options: webhookSenderOptions(config.webhooks),
    secretOf: webhookSecretFor,
    tracing,
  });
  events.subscribe('webhook.due', () => webhookSender.wake());
  const queue = new JobQueue({
    store: store.jobs,
    wakeups: store.wakeups,
    clock,
    log,
    takeAhead: config.takeAhead,
    ...(tracing !== undefined && { tracing }),
    admit: (accountId, request) => {
      if (isOnDisk) disk.checkRoom();
      return admission?.admit(accountId, request);
    },
    longestRetention: (accountId) => limitedBy?.retentionMs(accountId, 'jobHours'),
    credentials: new RequestCredentials(new Sealer(masterKey)),
    deliveryOf: (job, payloads) => deliveryOf(job, payloads, ids.resource(), clock.now()),
    events,
    instanceRuns: async (endpointId, workerId) =>
      (await store.workers.findWorker(endpointId, workerId))?.endedAt === null,
    instanceEnded: async (endpointId, workerId) =>
      ((await store.workers.findWorker(endpointId, workerId))?.endedAt ?? null) !== null,
  });
  let admission: QueueAdmission | undefined;
  let limitedBy: AccountDirectory | undefined;
  const reaper = new JobReaperLoop(queue.reaper, log);
  await queue.recover();
  return {
    queue,
    webhooks: new WebhookDeliveries({ store: store.jobs, clock, events }),
    webhookSender,
    webhookSecretFor,
    limitBy: (directory) => {
      limitedBy = directory;
      admission = new QueueAdmission({
        store: store.jobs,
        limitsOf: (accountId) => directory.limitsOf(accountId),
        installationLimits: () => directory.installationLimits,
        diskShare: () => {
          if (!isOnDisk || disk.scarceBytes === undefined) return undefined;
          const accounts = directory.list().length;
          return accounts < 2 ? undefined : disk.scarceBytes / accounts;
        },
        shared: {
          jobs: sharedRates('queued jobs', store.wakeups),
          bytes: sharedRates('queued bytes', store.wakeups),
        },
        now: () => performance.now(),
      });
    },
    start: () => {
      reaper.start();
      webhookSender.start();
    },
    close: async () => {
      await Promise.all([reaper.close(), webhookSender.close()]);
    },
  };
}
