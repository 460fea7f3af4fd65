import type { Readable } from 'node:stream';

/** The daemon's streams of messages: one JSON text per line. */
export async function* jsonLines<T>(stream: Readable): AsyncGenerator<T, void, undefined> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as T;
  }
  if (rest.trim() !== '') yield JSON.parse(rest) as T;
}
