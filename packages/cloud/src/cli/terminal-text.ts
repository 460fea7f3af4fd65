import { wrapText } from '../support/config/wrap-text.ts';
import type { OutputStream } from './cli-context.ts';

/** What a line begins with; the lines that it is broken into are indented as far. */
const LEAD = /^(?:berth: *|[\d.]+ s {2}| *)/;
/** A command is copied as a whole, so its words stay on one line. */
const COMMAND = /"(?:npx )?(?:berth|npm) [^"]*"/g;
/** Stands for a space between words that stay together. */
const HELD_SPACE = '\ue000';

/** Writes a line for people. A terminal would break it in the middle of words, so it is broken between them. */
export function writeLine(stream: OutputStream, line: string): void {
  stream.write(`${fitToTerminal(line, stream)}\n`);
}

/** The text with its lines broken between words where the stream is a terminal, and as it is elsewhere. */
export function fitToTerminal(text: string, { isTTY, columns = 0 }: OutputStream): string {
  if (isTTY !== true || columns === 0) return text;
  return text
    .split('\n')
    .flatMap((line) => (line.length > columns ? fitLine(line, columns) : [line]))
    .join('\n');
}

/** Lines of at most this width, except where a single word is longer. `lead` is what the line begins with. */
export function fitLine(line: string, width: number, lead = LEAD.exec(line)?.[0] ?? ''): string[] {
  const held = line
    .slice(lead.length)
    .replace(COMMAND, (found) =>
      lead.length + found.length < width ? found.replaceAll(' ', HELD_SPACE) : found,
    );
  return wrapText(held, Math.max(1, width - lead.length)).map(
    (part, index) => (index === 0 ? lead : ' '.repeat(lead.length)) + part.replaceAll(HELD_SPACE, ' '),
  );
}
