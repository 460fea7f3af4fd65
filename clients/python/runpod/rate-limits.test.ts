import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newEndpoint } from '../../../tests/support/jobs.ts';
import { stageOn } from '../../../tests/support/story.ts';
import { pythonOf, said } from '../programs.ts';

const python = pythonOf('runpod');

const IMPATIENT_CLIENT = `
import json, os
import runpod

runpod.api_key = os.environ["KEY"]
job = runpod.Endpoint(os.environ["ENDPOINT"]).run({"input": {"a": 1}})
# The job remembers its end, not that it waits: every call asks.
print("SAID " + json.dumps({"statuses": [job.status() for _ in range(5)]}))
`;

describe('the Python client under rate limits', () => {
  const stage = stageOn('sqlite', { BERTH_JOB_LIMITS_STATUS: '2/2' });

  test('asks again when it is told to, and gets all its answers', async () => {
    const jobs = await newEndpoint(stage.server.url, stage.server.key);
    const { statuses } = await said(python, IMPATIENT_CLIENT, {
      RUNPOD_ENDPOINT_BASE_URL: `${stage.server.url}/v2`,
      KEY: stage.server.key,
      ENDPOINT: jobs.id,
    });
    assert.deepEqual(
      statuses,
      Array.from({ length: 5 }, () => 'IN_QUEUE'),
    );
  });
});
