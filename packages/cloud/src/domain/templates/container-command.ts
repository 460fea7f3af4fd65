import { ruleError } from '../../support/errors.ts';

/**
 * A container's command has two written forms. Both are kept as one text, `args`:
 * shell text such as `python -u main.py "two words"`, which is split as a shell would and
 * replaces the image's CMD; or the JSON text `{"entrypoint": [...], "cmd": [...]}`.
 */
export interface ContainerCommand {
  entrypoint: string[];
  cmd: string[];
}

export function parseArgs(args: string): ContainerCommand {
  const trimmed = args.trim();
  if (trimmed.startsWith('{')) {
    const exact = readJsonForm(trimmed);
    if (exact !== undefined) return exact;
  }
  return { entrypoint: [], cmd: splitShellWords(args) };
}

/** The shortest text that parses back to exactly this command. */
export function formatArgs({ entrypoint, cmd }: ContainerCommand): string {
  if (entrypoint.length > 0) return JSON.stringify({ entrypoint, cmd });
  const plain = cmd.map(quoteWord).join(' ');
  return plain.startsWith('{') ? JSON.stringify({ entrypoint, cmd }) : plain;
}

function readJsonForm(text: string): ContainerCommand | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const { entrypoint = [], cmd = [], ...others } = value as Record<string, unknown>;
  if (Object.keys(others).length > 0 || !isTextList(entrypoint) || !isTextList(cmd)) return undefined;
  return { entrypoint, cmd };
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

/** Splits as a POSIX shell splits a simple command: quotes and backslashes count, nothing is expanded. */
export function splitShellWords(text: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let at = 0;
  while (at < text.length) {
    const char = text.charAt(at);
    if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      at += 1;
    } else if (char === "'") {
      const end = text.indexOf("'", at + 1);
      if (end === -1) throw unclosedQuoteError("'");
      word = (word ?? '') + text.slice(at + 1, end);
      at = end + 1;
    } else if (char === '"') {
      const [inner, end] = readDoubleQuoted(text, at + 1);
      word = (word ?? '') + inner;
      at = end + 1;
    } else if (char === '\\' && at + 1 < text.length) {
      word = (word ?? '') + text.charAt(at + 1);
      at += 2;
    } else {
      word = (word ?? '') + char;
      at += 1;
    }
  }
  if (word !== undefined) words.push(word);
  return words;
}

function readDoubleQuoted(text: string, start: number): [string, number] {
  let inner = '';
  for (let at = start; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === '"') return [inner, at];
    if (char === '\\' && '"\\$`'.includes(text.charAt(at + 1))) {
      at += 1;
      inner += text.charAt(at);
    } else inner += char;
  }
  throw unclosedQuoteError('"');
}

function quoteWord(word: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

function unclosedQuoteError(mark: string): Error {
  return ruleError(`the command has a quote ${mark} that is not closed`);
}
