import { memberText, withMember, replaceNaNWithNull } from '../../support/json-text.ts';
import { BerthError } from '../../support/errors.ts';

/** What a worker reports about a job. */
export type WorkerPost =
  | { kind: 'progress'; output: string }
  | { kind: 'result'; output: string | null; error: string | null; refresh: boolean };

/** Parses the body of job-done. It is JSON, whatever its content type, and may contain Python's NaN. */
export function parseJobDone(body: string): WorkerPost {
  const text = replaceNaNWithNull(body);
  const value = parse(text);
  if (isPlainOutput(text, value))
    return {
      kind: 'result',
      output: text.slice(PLAIN_OUTPUT.length, -1).trim(),
      error: null,
      refresh: false,
    };
  if (value['status'] === 'IN_PROGRESS')
    return { kind: 'progress', output: memberText(text, 'output') ?? 'null' };
  const failed = value['error'] !== undefined && value['error'] !== null;
  return {
    kind: 'result',
    output: memberText(text, 'output') ?? null,
    error: failed ? (memberText(text, 'error') ?? null) : null,
    refresh: value['stopPod'] === true,
  };
}

const PLAIN_OUTPUT = '{"output":';

/** Most results have only an output. The name must not occur twice in the text, not even with escapes. */
function isPlainOutput(text: string, value: Record<string, unknown>): boolean {
  return (
    text.startsWith(PLAIN_OUTPUT) &&
    text.endsWith('}') &&
    Object.keys(value).length === 1 &&
    !text.includes('"output"', PLAIN_OUTPUT.length) &&
    !text.includes('\\u')
  );
}

/** A single JSON value, as text. */
export function parseJsonValue(body: string): string {
  const text = replaceNaNWithNull(body);
  JSON.parse(text);
  return text;
}

/** The largest chunk of a stream; a larger one is split. */
export const MAX_CHUNK_BYTES = 1024 * 1024;

/** Parses the body of job-stream as one or more chunks. */
export function parseJobStream(body: string): string[] {
  const text = replaceNaNWithNull(body);
  const value = parse(text);
  if (Buffer.byteLength(text) <= MAX_CHUNK_BYTES) return [text];
  const output = value['output'];
  const isText = typeof output === 'string';
  // Anything but text is split as its JSON text, with part numbers.
  const chunks: object[] = isText
    ? splitText(output).map((piece) => ({ output: piece }))
    : numberParts(splitText(memberText(text, 'output') ?? 'null'));
  // The other members come with the last part.
  const last = Object.entries(chunks.at(-1) ?? {})
    .toReversed()
    .reduce((whole, [name, said]) => withMember(whole, name, JSON.stringify(said)), text);
  if (Buffer.byteLength(last) <= MAX_CHUNK_BYTES)
    return [...chunks.slice(0, -1).map((chunk) => JSON.stringify(chunk)), last];
  // If they do not fit, the whole body is split, which `of` says.
  return numberParts(splitText(text)).map((chunk) => JSON.stringify({ ...chunk, of: 'chunk' }));
}

function numberParts(pieces: readonly string[]): { output: string; part: number; parts: number }[] {
  return pieces.map((output, index) => ({ output, part: index + 1, parts: pieces.length }));
}

/** Pieces whose JSON is below the limit, never split inside a character. */
function splitText(text: string): string[] {
  // A character takes at most six bytes of JSON text.
  const size = Math.floor(MAX_CHUNK_BYTES / 7);
  const pieces: string[] = [];
  for (let at = 0; at < text.length; ) {
    let end = Math.min(text.length, at + size);
    const code = text.charCodeAt(end - 1);
    if (end < text.length && code >= 0xd800 && code <= 0xdbff) end -= 1;
    pieces.push(text.slice(at, end));
    at = end;
  }
  return pieces.length === 0 ? [''] : pieces;
}

function parse(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new BerthError('malformed', 'the body is not valid JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new BerthError('malformed', 'the body must be a JSON object');
  return value as Record<string, unknown>;
}
