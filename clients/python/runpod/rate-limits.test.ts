import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createQueueEndpoint } from '../../../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../../../packages/testing/src/server-fixture.ts';
import { installedPython, runPythonForJson } from '../python-programs.ts';

const python = installedPython('runpod');

const IMPATIENT_CLIENT = `
import json, os
import runpod

runpod.api_key = os.environ["KEY"]
job = runpod.Endpoint(os.environ["ENDPOINT"]).run({"input": {"a": 1}})
# The job remembers its end, not that it waits: every call asks.
print("SAID " + json.dumps({"statuses": [job.status() for _ in range(5)]}))
`;

describe('the Python client under rate limits', () => {
  const fixture = serverFixture('sqlite', { BERTH_JOB_LIMITS_STATUS: '2/2' });

  test('asks again when it is told to, and gets all its answers', async () => {
    const jobs = await createQueueEndpoint(fixture.server.url, fixture.server.key);
    const { statuses } = await runPythonForJson(python, IMPATIENT_CLIENT, {
      RUNPOD_ENDPOINT_BASE_URL: `${fixture.server.url}/v2`,
      KEY: fixture.server.key,
      ENDPOINT: jobs.id,
    });
    assert.deepEqual(
      statuses,
      Array.from({ length: 5 }, () => 'IN_QUEUE'),
    );
  });
});
