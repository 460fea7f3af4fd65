/** What points flash at a Berth: one origin for all that it talks to. */
export function flashEnvironment({ url, key }: { url: string; key: string }): Record<string, string> {
  return { RUNPOD_API_KEY: key, RUNPOD_API_BASE_URL: url, RUNPOD_ENDPOINT_BASE_URL: `${url}/v2`, RUNPOD_REST_API_URL: `${url}/v1`, RUNPOD_HAPI_URL: url, RUNPOD_CONSOLE_URL: url };
}
