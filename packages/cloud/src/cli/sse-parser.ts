/** One server-sent event. */
export interface ReceivedEvent {
  id: string | undefined;
  data: string;
}

/** Parses a stream of server-sent events. Comments, which only keep the connection alive, are skipped. */
export async function* parseServerSentEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ReceivedEvent> {
  let id: string | undefined;
  let data: string[] = [];
  for await (const line of readLines(body)) {
    if (line === '') {
      if (data.length > 0) yield { id, data: data.join('\n') };
      data = [];
      continue;
    }
    const colon = line.indexOf(':');
    const [field, value] =
      colon === -1 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
    if (field === 'id') id = value;
    else if (field === 'data') data.push(value);
  }
}

async function* readLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of body) {
    // A CR at the end may be the first half of a CRLF.
    const lines = (rest + decoder.decode(bytes, { stream: true })).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    yield* lines;
  }
}
