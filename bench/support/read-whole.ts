import { request } from 'node:http';
import type { Agent } from 'node:http';

/** Sends a request and reads the answer; resolves with its size. */
export function readWhole(agent: Agent, url: string, key: string, body?: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const asking = request(
      url,
      {
        agent,
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          ...(body !== undefined && { 'content-length': body.length }),
        },
      },
      (response) => {
        let size = 0;
        response.on('data', (chunk: Buffer) => (size += chunk.length));
        response.on('end', () => resolve(size));
        response.on('error', reject);
      },
    );
    asking.on('error', reject).end(body);
  });
}
