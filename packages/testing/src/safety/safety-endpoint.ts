import assert from 'node:assert/strict';
import type { ApiClient } from '../api-client.ts';

/** An endpoint whose workers are run by the test alone. */
export async function createSafetyEndpoint(client: ApiClient, maxRetries: number): Promise<string> {
  const { status, text, body } = await client.call<{ id: string }>('POST', '/v2/serverless', {
    name: 'safety',
    type: 'QUEUE',
    image: 'local/shell',
    cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
    workers: { min: 0, max: 0 },
    timeout: 0,
    maxRetries,
  });
  assert.equal(status, 201, text);
  return body.id;
}
