import { formats } from '../support/string-formats.ts';
import { isoTime, MAX_TIMESTAMP } from '../support/clock.ts';
import { UsageError } from './cli.errors.ts';

const UNITS_MS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };
const DURATION = /^(\d{1,9})([smhdw])$/;

/** Parses the expiry of a key: an instant, or a duration from now. */
export function parseExpiry(when: string, now: number): string {
  const [, count, unit] = DURATION.exec(when) ?? [];
  const instant =
    unit !== undefined ? now + Number(count) * (UNITS_MS[unit] ?? 0) : parseInstant(when.replace(' ', 'T'));
  if (Number.isNaN(instant))
    throw new UsageError(
      `--expires is ${JSON.stringify(when)}; allowed: a duration such as 30m, 12h or 7d, or an instant ` +
        'such as 2026-12-31T12:00:00Z',
    );
  if (instant <= now)
    throw new UsageError(`--expires is ${JSON.stringify(when)}, which is not in the future`);
  if (instant > MAX_TIMESTAMP)
    throw new UsageError(
      `--expires is ${JSON.stringify(when)}, which is after the year 9999; leave it out for a key that does not end`,
    );
  return isoTime(instant);
}

function parseInstant(text: string): number {
  return formats['date-time']?.(text) === true ? Date.parse(text) : NaN;
}
