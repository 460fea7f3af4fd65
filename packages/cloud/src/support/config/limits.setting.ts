import { parseBytes } from '../byte-size.ts';
import { isMapping, type SettingType } from './setting-type.ts';

/**
 * The limits of accounts and of the installation, with their units; domain/quotas.ts says what each means.
 */
export const LIMIT_UNITS = {
  queuedJobs: 'count',
  queuedBytes: 'bytes',
  logBytes: 'bytes',
  volumeBytes: 'bytes',
  imageBytes: 'bytes',
  workers: 'count',
  pods: 'count',
  gpus: 'count',
  requests: 'per minute',
  spendPerMonth: 'dollars',
  jobHours: 'hours',
  logHours: 'hours',
} as const satisfies Record<string, 'count' | 'per minute' | 'bytes' | 'dollars' | 'hours'>;

export type LimitName = keyof typeof LIMIT_UNITS;
export const LIMIT_NAMES = Object.keys(LIMIT_UNITS) as LimitName[];
/** The limits that are set. */
export type Limits = { [Name in LimitName]?: number };

/** A value as it is written: `1000`, `5GB`, `12.50`. Undefined if it is not one. */
export function parseLimit(name: LimitName, value: string | number): number | undefined {
  const text = String(value).trim();
  switch (LIMIT_UNITS[name]) {
    case 'bytes':
      return parseBytes(text);
    case 'dollars':
      return /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : undefined;
    case 'count':
    case 'per minute':
    case 'hours':
      return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
  }
}

/** `pods=10` as a name and a value; undefined if it is not that. */
export function parseLimitEntry(entry: string): [LimitName, number] | undefined {
  const at = entry.indexOf('=');
  return limitEntry(entry.slice(0, at === -1 ? undefined : at).trim(), at === -1 ? '' : entry.slice(at + 1));
}

function limitEntry(key: string, value: unknown): [LimitName, number] | undefined {
  const name = LIMIT_NAMES.find((known) => known === key);
  if (name === undefined || (typeof value !== 'string' && typeof value !== 'number')) return undefined;
  const limit = parseLimit(name, value);
  return limit === undefined ? undefined : [name, limit];
}

/** A mapping in the file, `pods=10,queuedBytes=1GB` in text. */
export function limitsType(): SettingType<Limits> {
  const fromEntries = (entries: readonly ([LimitName, number] | undefined)[]): Limits | undefined =>
    entries.some((entry) => entry === undefined)
      ? undefined
      : Object.fromEntries(entries as readonly [LimitName, number][]);
  const fromText = (text: string): Limits | undefined =>
    fromEntries(text === '' ? [] : text.split(',').map(parseLimitEntry));
  return {
    allowed: `limits such as pods=10,queuedBytes=1GB, of ${LIMIT_NAMES.join(', ')}; in the file also a mapping`,
    fromText,
    fromFile: (value) =>
      typeof value === 'string'
        ? fromText(value)
        : isMapping(value)
          ? fromEntries(Object.entries(value).map(([name, limit]) => limitEntry(name, limit)))
          : undefined,
    toYaml: (value) => JSON.stringify(value),
  };
}
