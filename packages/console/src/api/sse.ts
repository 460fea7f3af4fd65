export interface ServerEvent {
  /** Empty where the event has none. */
  id: string;
  data: string;
}

/** The server-sent events of a response, until it ends. */
export async function* readServerEvents(response: Response): AsyncGenerator<ServerEvent> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  while (reader !== undefined) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split(/\r?\n\r?\n/);
    rest = parts.pop() ?? '';
    for (const part of parts) {
      const data = eventData(part);
      if (data !== undefined) yield { id: /^id: ?(.*)$/m.exec(part)?.[1] ?? '', data };
    }
  }
}

/** Their data alone. */
export async function* readEvents(response: Response): AsyncGenerator<string> {
  for await (const { data } of readServerEvents(response)) yield data;
}

/** The `data` lines of one event; undefined for a comment. */
export function eventData(event: string): string | undefined {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith('data:'));
  return lines.length === 0 ? undefined : lines.map((line) => line.slice(5).replace(/^ /, '')).join('\n');
}
