import { BerthError } from '../support/errors.ts';

/** Deeper than any real document, far from any stack's end. */
const MAX_DEPTH = 64;

const decoder = new TextDecoder('utf-8', { fatal: true });

/** Reads a request body as JSON that can be kept: whole Unicode, no NUL, nesting that ends. */
export function parseJsonBody(bytes: Uint8Array): unknown {
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(bytes));
  } catch (error) {
    const reason = error instanceof SyntaxError ? withoutContent(error.message) : 'it is not valid UTF-8';
    throw new BerthError('malformed', `the request body is not valid JSON: ${reason}`);
  }
  checkValue(value, 0);
  return value;
}

/** The same rules for text from a path or a query string. */
export function checkText(text: string): void {
  if (text.includes('\0')) throw new BerthError('malformed', 'text must not contain a NUL character');
  if (!text.isWellFormed())
    throw new BerthError('malformed', 'text must be valid Unicode: it contains half of a surrogate pair');
}

function checkValue(value: unknown, depth: number): void {
  if (typeof value === 'string') return checkText(value);
  if (typeof value !== 'object' || value === null) return;
  if (depth >= MAX_DEPTH)
    throw new BerthError('malformed', `the request body is nested more than ${MAX_DEPTH} levels deep`);
  for (const [key, item] of Object.entries(value)) {
    if (key === '__proto__') throw new BerthError('malformed', 'a key must not be named __proto__');
    checkText(key);
    checkValue(item, depth + 1);
  }
}

/** The parser's message quotes what it read, and that may be a secret. */
function withoutContent(message: string): string {
  const place = /position (\d+)/.exec(message)?.[1];
  return place === undefined ? 'it ends too early or is empty' : `unexpected character at position ${place}`;
}
