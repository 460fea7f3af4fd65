import { memberText } from '../../support/json-text.ts';

/**
 * Encodes the chunks of a job as server-sent events. A handler for this API streams the text of
 * events itself, split anywhere: such text is passed on. Any other chunk becomes one event.
 */
export class SseEncoder {
  /** Parts of a value that was too large for one chunk. */
  #parts: string[] = [];

  /** The text that a chunk adds. */
  encode(chunk: string): string {
    const { output, part, parts } = JSON.parse(chunk) as {
      output?: unknown;
      part?: unknown;
      parts?: unknown;
    };
    if (typeof output !== 'string') return sseEvent(memberText(chunk, 'output') ?? chunk);
    if (typeof part !== 'number' || typeof parts !== 'number') return output;
    this.#parts.push(output);
    if (part < parts) return '';
    const whole = this.#parts.join('');
    this.#parts = [];
    return sseEvent(whole);
  }
}

/** A value of the output as an event: text as it is, anything else as data. */
export function encodeValue(json: string): string {
  const value: unknown = JSON.parse(json);
  return typeof value === 'string' ? value : sseEvent(json);
}

/** An event is one line: JSON has line breaks between its tokens only. */
export function sseEvent(json: string): string {
  return `data: ${json.replaceAll(/[\r\n]+/g, ' ')}\n\n`;
}
