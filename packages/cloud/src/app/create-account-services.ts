import { join, resolve } from 'node:path';
import { ROOT_ACCOUNT_ID } from '../domain/caller.ts';
import type { Endpoint } from '../domain/records.ts';
import { Billing } from '../metering/billing.ts';
import { signWebhook } from '../queue/webhooks/webhook-signature.ts';
import { AccountDirectory } from '../resources/accounts/account-directory.ts';
import { AccountRemoval } from '../resources/accounts/account-removal.ts';
import type { AccountRemovalDeps } from '../resources/accounts/account-removal.ts';
import { AccountWatch } from '../resources/accounts/account-watch.ts';
import type { SpendWarning } from '../resources/accounts/account-watch.ts';
import { LogUsage } from '../resources/accounts/log-usage.ts';
import { QuotaWarnings } from '../resources/accounts/quota-warnings.ts';
import { AccountRequests } from '../resources/accounts/account-requests.ts';
import { AccountQuotas } from '../resources/accounts/account-quotas.ts';
import { DiskShares } from '../resources/accounts/disk-shares.ts';
import { Images } from '../resources/images/images.ts';
import type { AppContext } from './app-context.ts';
import type { Engines } from './engines.ts';
import { sharedRates } from './shared-rates.ts';
import type { Storage } from './storage.ts';

const WATCH_INTERVAL_MS = 30_000;
const WEBHOOK_TIMEOUT_MS = 10_000;
const WEBHOOK_ATTEMPTS = 3;

/** Limits of accounts, and what happens to disabled and deleted ones. */
export interface AccountLimits {
  directory: AccountDirectory;
  quotas: AccountQuotas;
  requests: AccountRequests;
  /** The endpoint as its workers are managed: without any while its account is not active. */
  endpointInEffect(endpoint: Endpoint | undefined): Endpoint | undefined;
  deleteLog(dataCenterId: string, instanceId: string): Promise<void>;
  /** Watches spending and logs, and finishes removals, while this server leads. */
  start(removal: AccountRemoval): void;
  stop(): void;
}

export async function createAccountLimits(
  { config, log, clock, events, disk }: AppContext,
  { store, context }: Storage,
  engines: Engines,
  webhookSecretFor: (accountId: string) => string,
): Promise<AccountLimits> {
  const directory = new AccountDirectory({ store: store.accounts, events, configured: config.limits, log });
  await directory.load();
  const data = resolve(config.data);
  const deleteLog = async (dataCenterId: string, instanceId: string): Promise<void> => {
    await engines.byDataCenter.get(dataCenterId)?.deleteLog(instanceId);
  };
  const clusterLogs = [...engines.byDataCenter]
    .filter(([, { kind }]) => kind === 'kubernetes')
    .map(([id]) => join(data, 'kubernetes', id, 'logs'));
  const logUsage = new LogUsage({
    store,
    folders: [join(data, 'logs'), join(data, 'docker', 'logs'), ...clusterLogs],
    deleteLog,
  });
  const images = new Images(context, { folder: join(data, 'images') });
  const billing = new Billing(store.ledger, clock);
  const requests = new AccountRequests({ directory, clock, share: sharedRates('requests', store.wakeups) });
  const quotas = new AccountQuotas({
    directory,
    store,
    imageBytes: (accountId) => images.bytesOf(accountId),
    logBytes: (accountId) => logUsage.bytesOf(accountId),
    requests: (accountId) => requests.used(accountId),
    spentThisMonth: (accountId) => billing.spentThisMonth(accountId),
  });
  context.quotas = quotas;
  context.diskShares = new DiskShares({
    scarceBytes: () => disk.scarceBytes,
    accounts: () => directory.list().length,
  });
  const watch = new AccountWatch(context, {
    directory,
    quotas,
    logUsage,
    log,
    send: (warning) => sendWarning(config.limits.webhook, warning, webhookSecretFor(ROOT_ACCOUNT_ID)),
  });
  const warnings = new QuotaWarnings(quotas, events);
  let timer: NodeJS.Timeout | undefined;
  return {
    directory,
    quotas,
    requests,
    endpointInEffect: (endpoint) =>
      endpoint === undefined || directory.isActive(endpoint.accountId)
        ? endpoint
        : { ...endpoint, workersMin: 0, workersMax: 0, workersStandby: 0 },
    deleteLog,
    start: (removal) => {
      const round = async (): Promise<void> => {
        await removal.finishAll();
        await watch.check();
        await warnings.check();
      };
      const logged = (): void =>
        void round().catch((error: unknown) => log.warn({ err: error }, 'accounts could not be checked'));
      clearInterval(timer);
      timer = setInterval(logged, WATCH_INTERVAL_MS).unref();
      logged();
    },
    stop: () => clearInterval(timer),
  };
}

export function createAccountRemoval(
  deps: Omit<AccountRemovalDeps, 'deleteLog'>,
  { deleteLog }: AccountLimits,
): AccountRemoval {
  return new AccountRemoval({ ...deps, deleteLog });
}

/** To the operator's own address, so it may lie in a private network. */
async function sendWarning(url: string, warning: SpendWarning, secret: string): Promise<void> {
  if (url === '') return;
  const body = JSON.stringify(warning);
  for (let attempt = 1; ; attempt += 1) {
    try {
      const { status } = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-berth-signature': signWebhook(secret, body) },
        body,
        redirect: 'manual',
        signal: AbortSignal.timeout(WEBHOOK_TIMEOUT_MS),
      });
      if (status >= 200 && status < 300) return;
      throw new Error(`limits.webhook answered ${status}`);
    } catch (error) {
      if (attempt === WEBHOOK_ATTEMPTS) throw error;
    }
  }
}
