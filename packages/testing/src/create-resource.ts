import assert from 'node:assert/strict';
import type { ApiClient } from './api-client.ts';

/** The smallest CPU hardware of REST v2. */
export const CPU_HARDWARE = { id: 'cpu3c', vcpuCount: 2 };

/** Creates something with REST v2; its id. */
export async function createResource(client: ApiClient, path: string, body: unknown): Promise<string> {
  const created = await client.call<{ id: string }>('POST', path, body);
  assert.equal(created.status, 201, created.text);
  return created.body.id;
}

/** A queue endpoint of REST v2 on CPUs. */
export function queueEndpoint(
  name: string,
  image: string,
  workers: { min: number; max: number; idleTimeout?: number } = { min: 0, max: 2 },
): Record<string, unknown> {
  return {
    name,
    type: 'QUEUE',
    image,
    cpu: [CPU_HARDWARE],
    workers,
    scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
  };
}
