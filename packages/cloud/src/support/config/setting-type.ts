import { parseBytes } from '../byte-size.ts';

/**
 * The type of a setting: reads its value from each source, and returns undefined for a value that
 * is not allowed. The caller reports that, with the setting and the source.
 */
export interface SettingType<T> {
  /** What may be written, in words that follow "allowed:". */
  readonly allowed: string;
  /** A flag or an environment variable brings text. Without this, only the file can hold the value. */
  fromText?(text: string): T | undefined;
  fromFile(value: unknown): T | undefined;
  /** The value as one line of YAML, such that reading it gives the same value. */
  toYaml(value: T): string;
}

/** A type of single values: the file may hold them as text too. */
function scalar<T>(kind: {
  allowed: string;
  fromText(text: string): T | undefined;
  fromFile?(value: unknown): T | undefined;
  toYaml?(value: T): string;
}): SettingType<T> {
  return {
    allowed: kind.allowed,
    fromText: kind.fromText,
    fromFile: (value) => (typeof value === 'string' ? kind.fromText(value) : kind.fromFile?.(value)),
    toYaml: kind.toYaml ?? ((value) => plain(String(value))),
  };
}

/** Everything but bare words is quoted: YAML reads some text as numbers or dates. */
function plain(value: string): string {
  return /^[a-z]+$/i.test(value) && !/^(true|false|null)$/i.test(value) ? value : JSON.stringify(value);
}

export function textType(allowed: string, accept: (value: string) => boolean): SettingType<string> {
  return scalar({ allowed, fromText: (value) => (accept(value) ? value : undefined) });
}

/** Text that may be empty, which means: not set. */
export function optionalTextType(
  allowed: string,
  read: (value: string) => string | undefined,
): SettingType<string> {
  return scalar({ allowed: `${allowed}, or empty`, fromText: (value) => (value === '' ? '' : read(value)) });
}

export function wholeNumberType(
  minimum: number,
  maximum: number = Number.MAX_SAFE_INTEGER,
): SettingType<number> {
  // Adding 0 makes YAML's -0 an ordinary 0.
  const within = (value: number): number | undefined =>
    Number.isSafeInteger(value) && value >= minimum && value <= maximum ? value + 0 : undefined;
  return scalar({
    allowed:
      maximum === Number.MAX_SAFE_INTEGER
        ? `a whole number of at least ${minimum}`
        : `a whole number from ${minimum} to ${maximum}`,
    fromText: (value) => (/^\d{1,16}$/.test(value) ? within(Number(value)) : undefined),
    fromFile: (value) => (typeof value === 'number' ? within(value) : undefined),
    toYaml: String,
  });
}

/** A number of bytes, with or without a unit. */
export function byteSizeType(minimum: number): SettingType<number> {
  const within = (value: number | undefined): number | undefined =>
    value !== undefined && Number.isSafeInteger(value) && value >= minimum ? value + 0 : undefined;
  return scalar({
    allowed: `a size such as 64MB, 1.5GB or 16MiB of at least ${minimum} bytes`,
    fromText: (value) => within(parseBytes(value)),
    fromFile: (value) => (typeof value === 'number' ? within(value) : undefined),
    toYaml: (value) => (value > 0 && value % 1_000_000 === 0 ? `${value / 1_000_000}MB` : String(value)),
  });
}

const YES = ['true', 'on', 'yes', '1'];
const NO = ['false', 'off', 'no', '0'];

/** Yes or no, shown in the given pair of words. Every common pair is accepted. */
export function booleanType([yes, no]: readonly [string, string]): SettingType<boolean> {
  return scalar({
    allowed: `${yes} or ${no}`,
    fromText: (value) =>
      YES.includes(value.toLowerCase()) ? true : NO.includes(value.toLowerCase()) ? false : undefined,
    fromFile: (value) =>
      typeof value === 'boolean' ? value : value === 1 ? true : value === 0 ? false : undefined,
    toYaml: (value) => (value ? yes : no),
  });
}

export function enumType<const V extends string>(values: readonly V[]): SettingType<V> {
  return scalar({ allowed: values.join(', '), fromText: (value) => values.find((known) => known === value) });
}

/** A calendar date. */
export function dateType(): SettingType<string> {
  return textType('a date such as 2026-11-15', (value) => {
    if (!/^\d{4}-\d\d-\d\d$/.test(value)) return false;
    const instant = new Date(`${value}T00:00:00Z`);
    return !Number.isNaN(instant.getTime()) && instant.toISOString().startsWith(value);
  });
}

/** A base URL. A trailing slash is removed, so that a path can be appended. */
export function urlType(): SettingType<string> {
  return optionalTextType('an address such as https://berth.example.com', (value) => {
    const url = URL.parse(value);
    const usable =
      url !== null &&
      /^https?:$/.test(url.protocol) &&
      url.username === '' &&
      url.password === '' &&
      url.search === '' &&
      url.hash === '';
    return usable ? url.href.replace(/\/+$/, '') : undefined;
  });
}

/** A host and a port to listen on. An IPv6 address is in brackets. */
export function listenAddressType(): SettingType<string> {
  return optionalTextType('a host and a port such as 127.0.0.1:9464 or [::1]:9464', (value) => {
    const match = /^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})$/.exec(value);
    return match !== null && Number(match[2]) <= 65535 ? value : undefined;
  });
}

/** 32 bytes. Both notations give the same value: 64 hexadecimal digits in lower case. */
export function key32Type(): SettingType<string> {
  return optionalTextType('32 bytes as 64 hexadecimal digits or as base64', (value) => {
    if (/^[0-9a-f]{64}$/i.test(value)) return value.toLowerCase();
    if (!/^([A-Za-z0-9+/]{43}|[A-Za-z0-9_-]{43})=?$/.test(value)) return undefined;
    return Buffer.from(value, 'base64').toString('hex');
  });
}

/** A list in the file, `a,b` in text. One of `words` may be given instead of a list. */
export function listOrWordType<const W extends string>(
  words: readonly W[],
  items: string,
): SettingType<W | string[]> {
  const asList = (values: unknown[]): string[] | undefined => {
    const trimmed = values.map((value) => (typeof value === 'string' ? value.trim() : ''));
    const usable =
      trimmed.length > 0 &&
      trimmed.every(
        (value) => value !== '' && !value.includes(',') && !words.some((word) => word === value),
      ) &&
      areDistinct(trimmed);
    return usable ? trimmed : undefined;
  };
  const fromText = (value: string): W | string[] | undefined =>
    words.find((word) => word === value) ?? asList(value.split(','));
  return {
    allowed: `${words.join(', ')}, or a list of ${items}`,
    fromText,
    fromFile: (value) =>
      typeof value === 'string' ? fromText(value) : Array.isArray(value) ? asList(value) : undefined,
    toYaml: (value) => (typeof value === 'string' ? value : JSON.stringify(value)),
  };
}

/** A list in the file, `a,b` in text. It may be empty. */
export function listType(items: string, accept: (item: string) => boolean): SettingType<string[]> {
  const asList = (values: unknown[]): string[] | undefined => {
    const trimmed = values.map((value) => (typeof value === 'string' ? value.trim() : ''));
    return trimmed.every(accept) && areDistinct(trimmed) ? trimmed : undefined;
  };
  const fromText = (value: string): string[] | undefined => (value === '' ? [] : asList(value.split(',')));
  return {
    allowed: `a list of ${items}`,
    fromText,
    fromFile: (value) =>
      typeof value === 'string' ? fromText(value) : Array.isArray(value) ? asList(value) : undefined,
    toYaml: (value) => JSON.stringify(value),
  };
}

export function areDistinct(values: readonly string[]): boolean {
  return new Set(values).size === values.length;
}

/** Whether a value of the file is a mapping: not a list, not null. */
export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
