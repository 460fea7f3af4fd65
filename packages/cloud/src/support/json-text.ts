/**
 * JSON kept as text. Inputs of clients and outputs of workers pass through Berth unchanged: 1.0 stays 1.0,
 * and a number above 2^53 keeps its digits. Only the outermost object is parsed.
 */
export interface Member {
  key: string;
  /** The offset of the key's opening quote. */
  start: number;
  /** The text of the value. */
  valueStart: number;
  valueEnd: number;
}

/** The members of the outermost object of a valid JSON text. */
export function membersOf(text: string): Member[] {
  const members: Member[] = [];
  let at = skipSpace(text, 0) + 1;
  for (;;) {
    at = skipSpace(text, at);
    if (text.charCodeAt(at) === 0x7d) return members;
    const start = at;
    at = skipString(text, at);
    const key = JSON.parse(text.slice(start, at)) as string;
    at = skipSpace(text, skipSpace(text, at) + 1);
    const valueStart = at;
    at = skipValue(text, at);
    members.push({ key, start, valueStart, valueEnd: at });
    at = skipSpace(text, at);
    if (text.charCodeAt(at) === 0x2c) at += 1;
  }
}

/** The text of one member's value; for a repeated key the last one counts, as in JSON.parse. */
export function memberText(text: string, key: string): string | undefined {
  const found = membersOf(text).findLast((member) => member.key === key);
  return found === undefined ? undefined : text.slice(found.valueStart, found.valueEnd);
}

/** The object with this member set, as its first and only member of that name. */
export function withMember(text: string, key: string, value: string): string {
  const quotedKey = JSON.stringify(key);
  const first = text.indexOf('{') + 1;
  // If the key does not occur in the text, not even escaped, nothing has to be removed.
  if (!text.includes(quotedKey) && !text.includes('\\u') && text.charCodeAt(skipSpace(text, first)) !== 0x7d)
    return `{${quotedKey}:${value},${text.slice(first)}`;
  const kept = membersOf(text)
    .filter((member) => member.key !== key)
    .map(({ start, valueEnd }) => text.slice(start, valueEnd));
  return `{${[`${quotedKey}:${value}`, ...kept].join(',')}}`;
}

/**
 * A JSON merge patch (RFC 7396) on an object: null removes a member, an object changes what it names, all
 * else replaces. What the patch does not name keeps its text.
 */
export function mergePatch(text: string, patch: Readonly<Record<string, unknown>>): string {
  const merged = new Map(
    membersOf(text).map(({ key, valueStart, valueEnd }) => [key, text.slice(valueStart, valueEnd)]),
  );
  for (const [key, value] of Object.entries(patch)) {
    const before = merged.get(key);
    if (value === null) merged.delete(key);
    else if (isJsonObject(value))
      merged.set(key, mergePatch(before?.startsWith('{') === true ? before : '{}', value));
    else merged.set(key, JSON.stringify(value));
  }
  return `{${[...merged].map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`;
}

function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Valid JSON on one line: strings contain no raw line breaks, so those elsewhere can become spaces. */
export function toSingleLine(text: string): string {
  return text.includes('\n') || text.includes('\r') ? text.replace(/[\r\n]/g, ' ') : text;
}

const NAN_OR_INFINITY = /NaN|Infinity/;

/**
 * Python writes NaN and Infinity, which JSON does not have. They become null, except in strings; the rest of
 * the text is unchanged.
 */
export function replaceNaNWithNull(text: string): string {
  if (!NAN_OR_INFINITY.test(text)) return text;
  const parts: string[] = [];
  let kept = 0;
  // Strings are skipped by a loop: a regular expression that matches a string of many megabytes overflows the
  // stack.
  const token = /"|NaN|-?Infinity/g;
  for (let found = token.exec(text); found !== null; found = token.exec(text)) {
    if (found[0] === '"') {
      token.lastIndex = skipString(text, found.index);
      if (token.lastIndex === 0) break;
      continue;
    }
    parts.push(text.slice(kept, found.index), 'null');
    kept = token.lastIndex;
  }
  return parts.join('') + text.slice(kept);
}

function skipSpace(text: string, at: number): number {
  let next = at;
  for (
    let code = text.charCodeAt(next);
    code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
    code = text.charCodeAt(next)
  )
    next += 1;
  return next;
}

/** The offset after the string that starts here; 0 if it never ends, which only happens in invalid JSON. */
function skipString(text: string, at: number): number {
  let next = at + 1;
  for (;;) {
    const quote = text.indexOf('"', next);
    let slashes = 0;
    while (text.charCodeAt(quote - 1 - slashes) === 0x5c) slashes += 1;
    if (slashes % 2 === 0) return quote + 1;
    next = quote + 1;
  }
}

function skipValue(text: string, at: number): number {
  const first = text.charCodeAt(at);
  if (first === 0x22) return skipString(text, at);
  if (first !== 0x7b && first !== 0x5b) {
    let next = at;
    while (next < text.length && !/[,\]}\s]/.test(text.charAt(next))) next += 1;
    return next;
  }
  let depth = 0;
  let next = at;
  for (;;) {
    const code = text.charCodeAt(next);
    if (code === 0x22) {
      next = skipString(text, next);
      continue;
    }
    if (code === 0x7b || code === 0x5b) depth += 1;
    if (code === 0x7d || code === 0x5d) depth -= 1;
    next += 1;
    if (depth === 0) return next;
  }
}
