import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { acceleratedPythonSdk } from '../../packages/testing/src/python-sdks.ts';
import { createPersona } from './persona.fixture.ts';

/** A program written for the hosted service: nothing in it names an address. */
const PROGRAM = `
import os, runpod

runpod.api_key = os.environ["RUNPOD_API_KEY"]
endpoint = runpod.Endpoint(os.environ["ENDPOINT"])
print(endpoint.run_sync({"hello": "world"}, timeout=60))
print(len(runpod.get_pods()), "pods")
`;

const RUNPODCTL = resolve('clients/.installed/runpodctl/bin/runpodctl');

test('someone moving over keeps programs and tools, and changes an address', async (t) => {
  const sdk = acceleratedPythonSdk();
  const { folder, url, env, watch, startServer } = await createPersona(t);
  watch.read('README.md', '', 'First result in one minute', 'Use the clients you have');
  watch.read('docs/migration.md', '', 'Addresses', 'Steps', 'Names of data centers and GPUs', 'What differs');
  watch.read('docs/clients/python-sdk.md', '');
  watch.read('docs/clients/runpodctl.md', '');
  await startServer();
  const typed = { cwd: folder, env };
  await watch.type('berth deploy examples/echo --name echo', typed);
  const endpoint = (await watch.type('berth endpoint get echo -o name', typed)).trim();
  const moved = {
    ...env,
    RUNPOD_API_KEY: readFileSync(join(folder, '.berth/root.key'), 'utf8').trim(),
    ENDPOINT: endpoint,
    // All that changes.
    RUNPOD_API_BASE_URL: url,
    RUNPOD_ENDPOINT_BASE_URL: `${url}/v2`,
    RUNPOD_API_URL: `${url}/v1`,
    RUNPOD_GRAPHQL_URL: `${url}/graphql`,
  };
  // What every client sends, by hand.
  const curl = `curl -sf -H "Authorization: Bearer $RUNPOD_API_KEY"`;
  const answer = await watch.type(
    `${curl} "$RUNPOD_ENDPOINT_BASE_URL/$ENDPOINT/runsync" -d '{"input": {"hello": "world"}}'`,
    { cwd: folder, env: moved },
  );
  assert.equal((JSON.parse(answer) as { status: string }).status, 'COMPLETED');
  assert.deepEqual(
    JSON.parse(await watch.type(`${curl} "$RUNPOD_API_URL/pods"`, { cwd: folder, env: moved })),
    [],
  );
  if (typeof sdk === 'string') t.diagnostic(`without the Python SDK: ${sdk}`);
  else {
    writeFileSync(join(folder, 'program.py'), PROGRAM);
    assert.equal(
      await watch.type(`${sdk.python} program.py`, { cwd: folder, env: moved }),
      "{'hello': 'world'}\n0 pods\n",
    );
  }
  if (!existsSync(RUNPODCTL)) t.diagnostic('without runpodctl: it is not installed here');
  else await watch.type(`${RUNPODCTL} pod list`, { cwd: folder, env: { ...moved, HOME: folder } });
  await watch.type('berth rm echo --yes', typed);
  watch.assertWithinMinutes(10);
});
