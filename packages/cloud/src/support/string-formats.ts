import { MAX_TIMESTAMP } from './clock.ts';

/** The text formats that schemas may use. Accepted values can be passed to `Date` and `URL` unchanged. */
export const formats: Record<string, (text: string) => boolean> = {
  date: isDate,
  'date-time': isDateTime,
  uri: isUri,
};

/** The description of each format in error messages. */
export const formatDescriptions: Record<string, string> = {
  date: 'a date such as 2026-01-31',
  'date-time': 'a date and time such as 2026-01-31T12:00:00Z',
  uri: 'an absolute address such as https://host.test/path',
};

const DATE = /^(\d{4})-(\d\d)-(\d\d)$/;
const TIME = /^(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i;
const DATE_LENGTH = 10;
const FIRST_INSTANT = Date.parse('0000-01-01T00:00:00Z');

/** RFC 3339 full-date: a day that exists in the calendar. */
function isDate(text: string): boolean {
  const parts = DATE.exec(text);
  if (parts === null) return false;
  const [year, month, day] = parts.slice(1).map(Number) as [number, number, number];
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1];
  return days !== undefined && day >= 1 && day <= days;
}

/**
 * RFC 3339 date-time, without leap seconds, which `Date` does not have, and without times that an offset
 * moves out of the years 0000 to 9999: they could not be written in this format.
 */
function isDateTime(text: string): boolean {
  const isWellFormed =
    isDate(text.slice(0, DATE_LENGTH)) &&
    /^t/i.test(text.slice(DATE_LENGTH)) &&
    TIME.test(text.slice(DATE_LENGTH + 1));
  const instant = Date.parse(text);
  return isWellFormed && instant >= FIRST_INSTANT && instant <= MAX_TIMESTAMP;
}

const NOT_IN_A_URI = /[^\x21-\x7e]|["<>\\^`{|}]/;

/** RFC 3986: absolute, and only the characters of a URI. `URL` alone would silently encode others. */
function isUri(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:./i.test(text) && !NOT_IN_A_URI.test(text) && URL.canParse(text);
}
