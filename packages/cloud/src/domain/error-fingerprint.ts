import { createHash } from 'node:crypto';

/**
 * How much of an error is read to group it, in characters: the type and the message come before the
 * traceback.
 */
export const ERROR_PREFIX_CHARS = 8_192;
const MAX_MESSAGE_CHARS = 300;
const DIGEST_DIGITS = 12;
/** Of a character in JSON; a text may be cut inside one. */
const LONGEST_ESCAPE = '\\u0000'.length;

/** What a group of errors has in common. */
export interface ErrorFingerprint {
  /** Equal for errors that differ only in ids, numbers and paths. */
  fingerprint: string;
  /** The class of the exception, where the error names one. */
  type: string | null;
  /** The message with placeholders. */
  message: string;
}

/** `error`: the JSON text of a job's error, or the first part of it. */
export function errorFingerprint(error: string): ErrorFingerprint {
  const { type, message } = parseError(error);
  const normalised = normaliseMessage(message);
  const digest = createHash('sha256')
    .update(`${type ?? ''}\n${normalised}`)
    .digest('hex');
  return { fingerprint: digest.slice(0, DIGEST_DIGITS), type, message: normalised };
}

/** The error as a person reads it: its type and message, without traceback. */
export function errorText(error: string): string {
  const { type, message } = parseError(error);
  return type === null ? message : `${type}: ${message}`;
}

interface ErrorParts {
  type: string | null;
  message: string;
}

/**
 * An error is any JSON value. The Python SDK sends a string that is itself a JSON object with `error_type`,
 * `error_message` and `error_traceback`; others send a text, or an object.
 */
function parseError(text: string): ErrorParts {
  const value = parsePrefix(text);
  if (typeof value !== 'string') return fromObject(value) ?? { type: null, message: JSON.stringify(value) };
  if (!value.trimStart().startsWith('{')) return fromText(value);
  return fromObject(parseOrUndefined(value)) ?? fromCutObject(value) ?? fromText(value);
}

/** Parses JSON; of a truncated string, the part that is complete. */
function parsePrefix(text: string): unknown {
  const whole = parseOrUndefined(text);
  if (whole !== undefined) return whole;
  if (!text.startsWith('"')) return text;
  for (let cut = 0; cut < LONGEST_ESCAPE; cut += 1) {
    const part = parseOrUndefined(`${text.slice(0, text.length - cut)}"`);
    if (part !== undefined) return part;
  }
  return text;
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const TYPE_FIELDS = ['error_type', 'type', 'name'];
const MESSAGE_FIELDS = ['error_message', 'message', 'error', 'detail'];

function fromObject(value: unknown): ErrorParts | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const field = (names: string[]): string | undefined =>
    names
      .map((name) => (value as Record<string, unknown>)[name])
      .find((found): found is string => typeof found === 'string' && found !== '');
  const type = field(TYPE_FIELDS);
  const message = field(MESSAGE_FIELDS);
  if (type === undefined && message === undefined) return undefined;
  return { type: type === undefined ? null : className(type), message: message ?? '' };
}

function fromCutObject(text: string): ErrorParts | undefined {
  const field = (name: string): string | undefined =>
    new RegExp(`"${name}"\\s*:\\s*"((?:[^"\\\\]|\\\\.)*)`).exec(text)?.[1];
  return fromObject({ error_type: field('error_type'), error_message: field('error_message') });
}

/** `<class 'ValueError'>` as Python writes it. */
function className(type: string): string {
  return /^<class '(?<name>[^']+)'>$/.exec(type)?.groups?.['name'] ?? type;
}

/** Of a traceback, the last line is the error; of any other text, the first. */
function fromText(text: string): ErrorParts {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const line = (text.startsWith('Traceback') ? lines.at(-1) : lines[0]) ?? '';
  const found = /^(?<type>[\w.]*(?:Error|Exception|Interrupt|Exit|Warning)): (?<message>.*)$/.exec(
    line,
  )?.groups;
  return { type: found?.['type'] ?? null, message: found?.['message'] ?? line };
}

/** In this order: an address contains a path, a path may contain an id, and an id contains digits. */
const PLACEHOLDERS: readonly (readonly [RegExp, string])[] = [
  [/\b[a-z][a-z0-9+.-]*:\/\/[^\s'"<>]+/gi, '<url>'],
  [/(?<![\w<])(?:[a-z]:)?(?:[\\/][\w.@~+-]+)+[\\/]?/gi, '<path>'],
  [/\b(?:sync-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?:-\w+)?\b/gi, '<id>'],
  [/\b0x[0-9a-f]+\b/gi, '<id>'],
  [/\b(?=[0-9a-z_-]*\d)(?=[0-9a-z_-]*[a-z])[0-9a-z_-]{8,}\b/gi, '<id>'],
  [/\d+(?:[.,:]\d+)*/g, '<n>'],
];

function normaliseMessage(message: string): string {
  const cut = message.slice(0, 4 * MAX_MESSAGE_CHARS);
  return PLACEHOLDERS.reduce((text, [pattern, placeholder]) => text.replaceAll(pattern, placeholder), cut)
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, MAX_MESSAGE_CHARS);
}
