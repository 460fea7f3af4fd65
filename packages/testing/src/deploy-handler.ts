import assert from 'node:assert/strict';
import type { ApiClient } from './api-client.ts';

export interface WorkerView {
  id: string;
  accelerated?: boolean;
  status: string;
  version: number;
}

/** Uploads a handler and makes an endpoint of it. */
export async function deployHandler(
  client: ApiClient,
  name: string,
  handler: string,
  settings: Record<string, unknown> = {},
): Promise<string> {
  const image = await uploadHandler(client, name, handler);
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

export async function uploadHandler(client: ApiClient, name: string, handler: string): Promise<string> {
  const { status, body, text } = await client.call<{ image: string }>('POST', '/v2/images', {
    name,
    files: [{ path: 'handler.ts', data: Buffer.from(handler).toString('base64') }],
  });
  assert.equal(status, 201, text);
  return body.image;
}

export async function listWorkers(client: ApiClient, endpointId: string): Promise<WorkerView[]> {
  return (await client.call<{ workers: WorkerView[] }>('GET', `/v2/serverless/${endpointId}/workers`)).body
    .workers;
}
