import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { acceleratedPythonSdk } from '../../packages/testing/src/python-sdks.ts';
import { createPersona } from './persona.fixture.ts';

/** What the engineer has already: a handler for the hosted service, or one written for Berth's own SDK. */
const handler = (sdk: string): string => `
import ${sdk}


def handler(job):
    for word in job["input"]["text"].split():
        yield word.upper()


runpod.serverless.start({"handler": handler, "return_aggregate_stream": True})
`;

test('an ML engineer gets a streaming, accelerated and monitored endpoint in Python', async (t) => {
  const { folder, isClone, url, env, watch, startServer } = await createPersona(t);
  const sdk = acceleratedPythonSdk();
  const isPublic = isClone || typeof sdk !== 'string';
  if (!isPublic) t.diagnostic(`with Berth's own SDK: ${sdk}`);
  const typed = { cwd: folder, env };
  watch.read('README.md', '', 'First result in one minute', 'Write a worker');
  watch.read('docs/python.md', '', 'Acceleration');
  watch.read('docs/monitoring.md', '', 'History');
  assert.match(await startServer(), /console/);

  mkdirSync(join(folder, 'shout'));
  writeFileSync(join(folder, 'shout/handler.py'), handler(isPublic ? 'runpod' : 'berth_worker as runpod'));
  // In the long tier the public SDK is installed as for anybody; else it is there already.
  if (isClone) copyFileSync('examples/python-echo/requirements.txt', join(folder, 'shout/requirements.txt'));
  else if (typeof sdk !== 'string')
    writeFileSync(
      join(folder, 'shout/berth.json'),
      JSON.stringify({ command: [sdk.python, '-u', 'handler.py'], python: false }),
    );
  await watch.type('berth deploy shout --accelerate --min 1', typed);
  const streamed = await watch.type(`berth run shout '{"text": "one two three"}' --stream`, typed);
  assert.equal(streamed, 'ONE\nTWO\nTHREE\n');

  const workers = await watch.type('berth ps shout', typed);
  assert.match(workers, /shout|READY|IDLE|ready|idle/);
  const endpoint = (await watch.type('berth endpoint get shout -o name', typed)).trim();
  const call = (path: string): string =>
    `curl -sf -H "Authorization: Bearer $(cat .berth/root.key)" '${url}${path}'`;
  const listed = JSON.parse(await watch.type(call(`/v2/serverless/${endpoint}/workers`), typed)) as {
    workers: { accelerated: boolean }[];
  };
  assert.equal(listed.workers[0]?.accelerated, true);

  const history = JSON.parse(
    await watch.type(call(`/v2/serverless/${endpoint}/metrics?range=1h`), typed),
  ) as {
    total: { completed: number; coldStarts: { count: number } };
  };
  assert.equal(history.total.completed, 1);
  assert.match(
    await watch.type(call('/metrics'), typed),
    new RegExp(`berth_jobs_ended_total\\{.*${endpoint}.*\\} 1`),
  );
  await watch.type('berth rm shout --yes', typed);
  watch.assertWithinMinutes(10);
});
