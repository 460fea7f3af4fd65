import { formatBytes } from '../support/byte-size.ts';
import { LIMIT_NAMES, LIMIT_UNITS } from '../support/config/limits.setting.ts';
import type { LimitName, Limits } from '../support/config/limits.setting.ts';
import { BerthError, ruleError } from '../support/errors.ts';
import type { ErrorCode } from '../support/errors.ts';

export type QuotaName = LimitName;
export const QUOTA_NAMES = LIMIT_NAMES;
/** The limits that are set. None applies unless it is set. */
export type QuotaLimits = Limits;

/** What each limit counts. */
export const QUOTA_DESCRIPTIONS: Record<QuotaName, string> = {
  queuedJobs: 'jobs that wait in queues',
  queuedBytes: 'requests of jobs that wait in queues',
  logBytes: 'logs of pods and workers',
  volumeBytes: 'sizes of network volumes',
  imageBytes: 'uploaded images',
  workers: 'workers, by the maximum of each endpoint',
  pods: 'pods',
  gpus: 'GPUs of running pods and workers',
  requests: 'requests in a minute',
  spendPerMonth: 'US dollars in a calendar month (UTC)',
  jobHours: 'hours for which jobs are kept after their end',
  logHours: 'hours for which logs are kept after the end of their worker or pod',
};

/** At this part of a spending limit a warning is sent. */
export const SPEND_WARNING_RATIO = 0.8;

export function isNearLimit({
  name,
  used,
  limit,
}: {
  name: QuotaName;
  used: number;
  limit: number | null;
}): boolean {
  return limit !== null && !isRetention(name) && used >= SPEND_WARNING_RATIO * limit;
}

/** Bytes in a GB of a network volume. */
export const VOLUME_BYTES_PER_GB = 1e9;

/** Of more waiting jobs, the bytes are estimated: counting them row by row would hold up everything else. */
export const MAX_COUNTED_JOBS = 20_000;

function isQuotaName(name: string): name is QuotaName {
  return Object.hasOwn(LIMIT_UNITS, name);
}

/** A time after which something is deleted: nothing is used up, and nothing is refused. */
export function isRetention(name: QuotaName): boolean {
  return LIMIT_UNITS[name] === 'hours';
}

/** Whose limit it is. The limit of the installation is over all accounts. */
export type QuotaOwner = 'account' | 'installation';

type Unit = (typeof LIMIT_UNITS)[QuotaName];
/** Limits that something can go beyond. */
export type RefusingQuotaName = Exclude<QuotaName, 'jobHours' | 'logHours'>;

const REFUSAL_CODES: Record<Exclude<Unit, 'hours'>, ErrorCode> = {
  count: 'quota-count',
  'per minute': 'rate',
  bytes: 'quota-bytes',
  dollars: 'quota-spending',
};

/** How much of a limit is used. */
interface LimitUse {
  used: number;
  added: number;
  limit: number;
  /** Until it is unused again, for a limit of requests. */
  secondsLeft?: number;
}

/** The refusal of what would use more than the limit: which one, how much is used, and who can raise it. */
export function quotaError(
  name: RefusingQuotaName,
  owner: QuotaOwner,
  { used, added, limit, secondsLeft }: LimitUse,
): BerthError {
  const unit = LIMIT_UNITS[name];
  const format = (amount: number): string => formatAmount(unit, amount);
  const whose = owner === 'account' ? 'of this account' : 'of this installation';
  const how =
    owner === 'account'
      ? `an operator can raise it: berth account limits ACCOUNT --set ${name}=VALUE`
      : `an operator can raise it in the setting limits.installation`;
  const more =
    secondsLeft !== undefined
      ? `; try again in ${secondsLeft} s`
      : unit === 'dollars'
        ? ''
        : `, and this needs ${format(added)} more`;
  return new BerthError(
    REFUSAL_CODES[unit],
    `the limit ${name} (${QUOTA_DESCRIPTIONS[name]}) ${whose} is reached: ${format(used)} of ` +
      `${format(limit)} used${more}; ${how}`,
    {
      limit: { name, owner, used, maximum: limit },
      ...(secondsLeft !== undefined && { headers: { 'retry-after': String(secondsLeft) } }),
    },
  );
}

/** Whose limit it is, where the disk is nearly full. */
export const DISK_SHARE = 'disk share' as const;

/** The disk is nearly full, and the account already has its share of what is left. */
export function diskShareError(what: 'queues' | 'uploads', used: number, share: number): BerthError {
  const [has, instead] =
    what === 'queues'
      ? ['has', 'let workers finish jobs or purge a queue']
      : ['would have', 'delete files of volumes or images'];
  return new BerthError(
    'quota-bytes',
    `the disk is nearly full, and this account ${has} ${formatBytes(used)} in its ${what}, more than its ` +
      `share of the rest (${formatBytes(share)}); ${instead}, or ask an operator for more disk space`,
    {
      limit: {
        name: what === 'queues' ? 'queuedBytes' : 'volumeBytes',
        owner: DISK_SHARE,
        used,
        maximum: share,
      },
    },
  );
}

function formatAmount(unit: Exclude<Unit, 'hours'>, amount: number): string {
  if (unit === 'bytes') return formatBytes(amount);
  if (unit === 'dollars') return `$${amount.toFixed(2)}`;
  return amount.toLocaleString('en');
}

/** Limits from a client: a number sets one, null removes it. Throws with every finding. */
export function applyQuotaChange(
  current: QuotaLimits,
  change: Readonly<Record<string, number | null | undefined>>,
): QuotaLimits {
  const findings: string[] = [];
  const next: QuotaLimits = { ...current };
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined) continue;
    if (!isQuotaName(name)) findings.push(`${name} is not a limit; there is ${QUOTA_NAMES.join(', ')}`);
    else if (value === null) delete next[name];
    else if (!isQuotaValue(name, value)) findings.push(`${name} must be ${allowedValue(name)}, not ${value}`);
    else next[name] = value;
  }
  if (findings.length > 0) throw ruleError(findings.join('; '), findings);
  return next;
}

function isQuotaValue(name: QuotaName, value: number): boolean {
  if (!Number.isFinite(value) || value < 0 || value > Number.MAX_SAFE_INTEGER) return false;
  return LIMIT_UNITS[name] === 'dollars' || Number.isSafeInteger(value);
}

function allowedValue(name: QuotaName): string {
  return {
    count: 'a whole number',
    'per minute': 'a whole number',
    bytes: 'a number of bytes',
    dollars: 'an amount in US dollars',
    hours: 'a whole number of hours',
  }[LIMIT_UNITS[name]];
}
