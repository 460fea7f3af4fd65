import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { ApiClient } from '../../../packages/testing/src/api-client.ts';
import type { PythonInterpreter } from '../../../packages/testing/src/python-process.ts';

/** What points flash at a Berth: one origin for all that it talks to. */
export function flashEnvironment({ url, key }: { url: string; key: string }): Record<string, string> {
  return {
    RUNPOD_API_KEY: key,
    RUNPOD_API_BASE_URL: url,
    RUNPOD_ENDPOINT_BASE_URL: `${url}/v2`,
    RUNPOD_REST_API_URL: `${url}/v1`,
    RUNPOD_HAPI_URL: url,
    RUNPOD_CONSOLE_URL: url,
  };
}

/** An image of the process engine from a program that stands in for one of flash's own; answers its name. */
export async function uploadStandInImage(
  client: ApiClient,
  python: PythonInterpreter,
  name: string,
  program: string,
): Promise<string> {
  const files = {
    'handler.py': readFileSync(new URL(program, import.meta.url), 'utf8'),
    'berth.json': JSON.stringify({ command: [python.path, '-u', 'handler.py'] }),
  };
  const made = await client.call<{ image: string }>('POST', '/v2/images', {
    name,
    files: Object.entries(files).map(([path, text]) => ({
      path,
      data: Buffer.from(text).toString('base64'),
    })),
  });
  assert.equal(made.status, 201, made.text);
  return made.body.image;
}
