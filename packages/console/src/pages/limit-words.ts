export const LIMIT_WORDS: Record<string, string> = {
  queuedJobs: 'Jobs that wait',
  queuedBytes: 'Bytes of jobs that wait',
  logBytes: 'Bytes of logs',
  volumeBytes: 'Bytes of volumes',
  imageBytes: 'Bytes of deployed folders',
  workers: 'Workers, by the maximum of each endpoint',
  pods: 'Pods',
  gpus: 'GPUs',
  requests: 'Requests a minute',
  spendPerMonth: 'US dollars a month',
  jobHours: 'Hours that ended jobs are kept',
  logHours: 'Hours that logs are kept after the end',
};

/** A time is no amount of which a part is used. */
export function isHours(name: string): boolean {
  return name.endsWith('Hours');
}

const BYTES: Record<string, number> = { '': 1, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };

/** What somebody typed as a limit: a number, of bytes with a unit if they like; undefined where it is none. */
export function parseAmount(name: string, text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d+(?:\.\d+)?)\s*([KMGT]B)?$/i.exec(text.trim()) ?? [];
  const factor = BYTES[unit.toUpperCase()];
  if (digits === undefined || factor === undefined || (unit !== '' && !name.endsWith('Bytes')))
    return undefined;
  const amount = Number(digits) * factor;
  return name.endsWith('Bytes') ? Math.round(amount) : amount;
}

/** What a field of a limit begins with. */
export function amountText(name: string, amount: number | null): string {
  if (amount === null) return '';
  if (!name.endsWith('Bytes')) return String(amount);
  const [unit = '', factor = 1] =
    Object.entries(BYTES)
      .toReversed()
      .find(([, each]) => amount >= each && amount % each === 0) ?? [];
  return `${amount / factor}${unit === '' ? '' : ` ${unit}`}`;
}
