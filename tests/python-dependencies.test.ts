import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { examplesFixture } from '../packages/testing/src/examples-fixture.ts';
import { writeWheel } from '../packages/testing/src/python-wheel.ts';
import { createTemporaryFolder, type TemporaryFolder } from '../packages/testing/src/temporary-folder.ts';

interface Job {
  id: string;
  status: string;
  output?: unknown;
  reason?: string;
  phases?: Record<string, string | null>;
}
interface WorkerList {
  workers: { id: string; phases: Record<string, string | null> }[];
  reason: string | null;
}

const PHASES = ['scheduledAt', 'imageReadyAt', 'startedAt', 'connectedAt', 'firstJobAt'];
const HANDLER = `import berth_worker
import tiny


def handler(job):
    return {"tiny": tiny.VERSION, "echo": job["input"]}


berth_worker.start({"handler": handler})
`;

describe('the dependencies of a Python folder', () => {
  /** The packages that the operator's settings name. */
  const index = mkdtempSync(join(tmpdir(), 'berth-index-'));
  const fixture = examplesFixture({
    PIP_NO_INDEX: '1',
    PIP_FIND_LINKS: index,
    UV_NO_INDEX: '1',
    UV_FIND_LINKS: index,
  });
  const { berth } = fixture;
  let folder: TemporaryFolder;

  before(() => {
    folder = createTemporaryFolder('with-tiny', {
      'handler.py': HANDLER,
      'requirements.txt': '--find-links ./wheels\ntiny==1.0\n',
    });
    writeWheel(join(folder.path, 'wheels'), 'tiny', '1.0', 'VERSION = "1.0"\n');
  });
  after(() => {
    folder.remove();
    rmSync(index, { recursive: true });
  });

  const status = async (endpoint: string, id: string): Promise<Job> =>
    (await fixture.server.client().call<Job>('GET', `/v2/${endpoint}/status/${id}`)).body;

  test('are installed once, and the job and its worker tell how the start went', async () => {
    const deployed = await berth<{ id: string }>('deploy', folder.path, '--min', '1', '--max', '2');
    assert.equal(deployed.code, 0, deployed.stderr);
    const ran = await berth<Job>('run', 'with-tiny', '{"input": 1}', '--sync');
    assert.deepEqual(ran.json.output, { tiny: '1.0', echo: 1 }, ran.stderr);
    const again = await berth<Job>('run', 'with-tiny', '{"input": 2}', '--sync');
    assert.equal('phases' in again.json, false, 'a job that did not wait for a start shows one');

    const first = await status(deployed.json.id, ran.json.id);
    const times = PHASES.map((phase) => Date.parse(first.phases?.[phase] ?? ''));
    assert.ok(
      times.every((time, index) => index === 0 || time >= (times[index - 1] ?? NaN)),
      `${times}`,
    );
    const { workers } = (await berth<WorkerList>('ps', 'with-tiny')).json;
    assert.deepEqual(workers[0]?.phases, first.phases);

    const log = await berth('logs', 'with-tiny');
    assert.match(log.stdout, /Building the Python environment: Python 3.*, requirements\.txt, with (pip|uv)/);
    assert.match(log.stdout, /The Python environment is ready\./);
    const environments = readdirSync(join(fixture.database.data, 'python', 'root'));
    assert.equal(environments.filter((name) => name.endsWith('.json')).length, 1);
  });

  test('that cannot be found are the reason of the waiting job, which runs after a mend and a deploy', async () => {
    folder.write({ 'requirements.txt': '--find-links ./wheels\ntiny\nno_such_package_yet\n' });
    const { json: endpoint } = await berth<{ id: string }>('deploy', folder.path, '--name', 'broken');
    const { json: job } = await berth<Job>('run', 'broken', '{"input": 3}');
    const reason = await waitFor(
      'the reason is known',
      async () => {
        const found = (await status(endpoint.id, job.id)).reason ?? '';
        return /could not be built/.test(found) && found;
      },
      60_000,
    );
    assert.match(reason, /no.such.package.yet/);
    assert.match(reason, /tried again after \d+ s, or when the endpoint is deployed again/);
    const { json: listed } = await berth<WorkerList>('ps', 'broken');
    assert.match(listed.reason ?? '', /no.such.package.yet/);

    // The folder stays as it is; the index of the operator has the package now.
    writeWheel(index, 'no_such_package_yet', '1.0', '');
    assert.equal((await berth('deploy', folder.path, '--name', 'broken')).code, 0);
    const ended = await waitFor(
      'the job has ended',
      async () => {
        const found = await status(endpoint.id, job.id);
        return found.status === 'COMPLETED' && found;
      },
      60_000,
    );
    assert.deepEqual(ended.output, { tiny: '1.0', echo: 3 });
  });

  test('for a Python that is not installed: the reason names those that are', async () => {
    folder.write({ 'berth.json': '{"python": "3.99"}' });
    const { json: endpoint } = await berth<{ id: string }>('deploy', folder.path, '--name', 'future');
    const { json: job } = await berth<Job>('run', 'future', '{"input": 4}');
    await waitFor('the reason is known', async () =>
      /Python 3\.99, which berth\.json asks for, is not installed on this machine; installed: 3\./.test(
        (await status(endpoint.id, job.id)).reason ?? '',
      ),
    );
  });
});
