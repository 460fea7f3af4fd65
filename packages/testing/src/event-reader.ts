import { parseServerSentEvents } from '../../cloud/src/cli/sse-parser.ts';
import { waitFor } from './wait-for.ts';

export interface ReceivedAccountEvent {
  id: string | undefined;
  type: string;
  [field: string]: unknown;
}

/** Reads `GET /v2/events` in the background and keeps what came. */
export interface EventReader {
  readonly events: ReceivedAccountEvent[];
  /** True once the server has ended the stream. */
  hasEnded(): boolean;
  /** The first event that fits, as soon as it is there. */
  waitFor(what: string, fits: (event: ReceivedAccountEvent) => boolean): Promise<ReceivedAccountEvent>;
  close(): void;
}

export async function readEvents(
  url: string,
  key: string,
  query = '',
  lastEventId?: string,
): Promise<EventReader> {
  const abort = new AbortController();
  const response = await fetch(`${url}/v2/events${query}`, {
    headers: {
      authorization: `Bearer ${key}`,
      ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
    },
    signal: abort.signal,
  });
  if (response.status !== 200 || response.body === null)
    throw new Error(`${response.status} ${await response.text()}`);
  const events: ReceivedAccountEvent[] = [];
  let ended = false;
  const reading = async (body: AsyncIterable<Uint8Array>): Promise<void> => {
    try {
      for await (const { id, data } of parseServerSentEvents(body))
        events.push({ id, ...(JSON.parse(data) as { type: string }) });
    } catch {
      // Broken off: by the server, or by `close`.
    }
    ended = true;
  };
  void reading(response.body);
  return {
    events,
    hasEnded: () => ended,
    waitFor: (what, fits) => waitFor(`the event: ${what}`, () => events.find(fits)),
    close: () => abort.abort(),
  };
}
