import assert from 'node:assert/strict';
import type { Client } from './client.ts';

export interface WorkerAnswer {
  id: string;
  status: string;
  version: number;
}

/** Uploads a handler and makes an endpoint of it. */
export async function deploy(
  client: Client,
  name: string,
  handler: string,
  settings: Record<string, unknown> = {},
): Promise<string> {
  const image = await upload(client, name, handler);
  const made = await client.call<{ id: string }>('POST', '/v2/serverless', {
    name,
    type: 'QUEUE',
    image,
    cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    scaling: { type: 'REQUEST_COUNT', requestCount: 1 },
    ...settings,
  });
  assert.equal(made.status, 201, made.text);
  return made.body.id;
}

export async function upload(client: Client, name: string, handler: string): Promise<string> {
  const { status, body, text } = await client.call<{ image: string }>('POST', '/v2/images', {
    name,
    files: [{ path: 'handler.ts', data: Buffer.from(handler).toString('base64') }],
  });
  assert.equal(status, 201, text);
  return body.image;
}

export async function workersOf(client: Client, endpointId: string): Promise<WorkerAnswer[]> {
  return (await client.call<{ workers: WorkerAnswer[] }>('GET', `/v2/serverless/${endpointId}/workers`)).body
    .workers;
}

/** Looks again and again until it is so; a state that others bring about has no event to wait for from outside. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false>,
  withinMs = 20_000,
): Promise<T> {
  const end = Date.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > end) throw new Error(`not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
