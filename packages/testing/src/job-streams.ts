import assert from 'node:assert/strict';
import type { QueueEndpointClient } from './queue-endpoint-client.ts';

/** A client that gets the chunks in an object with the job's status. */
export const ENVELOPE = { 'user-agent': 'RunPod-JS-SDK/1.1.2 (Linux)' };

export interface Chunk {
  output: unknown;
  part?: number;
  parts?: number;
}

export interface Envelope {
  id: string;
  status: string;
  stream: Chunk[];
}

interface ServerEvent {
  id: string;
  data: Chunk;
}

/** The events of a text of server-sent events; comments are no events. */
export function eventsOf(text: string): ServerEvent[] {
  return text
    .split('\n\n')
    .map(
      (block) =>
        Object.fromEntries(
          block
            .split('\n')
            .filter((line) => /^(id|data): /.test(line))
            .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
        ) as { id?: string; data?: string },
    )
    .flatMap(({ id, data }) =>
      id === undefined || data === undefined ? [] : [{ id, data: JSON.parse(data) as Chunk }],
    );
}

/** The next chunks of a job, with its status. */
export async function readStream(jobs: QueueEndpointClient, id: string): Promise<Envelope> {
  return (await jobs.call<Envelope>('GET', `stream/${id}`, undefined, ENVELOPE)).body;
}

/** Follows a job by server-sent events; resolves with the whole text when the server closes. */
export async function followStream(
  jobs: QueueEndpointClient,
  id: string,
  headers: Record<string, string> = {},
  onText: (text: string) => void = () => undefined,
): Promise<string> {
  const response = await fetch(`${jobs.url}/stream/${id}`, {
    headers: { authorization: jobs.key, accept: 'text/event-stream', ...headers },
  });
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes as Uint8Array, { stream: true });
    onText(text);
  }
  return text;
}
