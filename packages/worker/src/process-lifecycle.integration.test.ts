import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { FakePlatform } from '../../testing/src/worker-sdk/fake-platform.ts';

const program = fileURLToPath(new URL('../../testing/src/worker-sdk/example-worker.ts', import.meta.url));

describe('a worker as a process', () => {
  let server: FakePlatform;
  let children: ChildProcess[];

  beforeEach(async () => {
    server = await FakePlatform.start({ channel: true });
    children = [];
  });
  afterEach(async () => {
    for (const child of children) child.kill('SIGKILL');
    await server.stop();
  });

  function start(handler: string, variables: Record<string, string> = {}) {
    const child = spawn(process.execPath, [program], {
      env: server.environment({ TEST_HANDLER: handler, ...variables }),
      stdio: 'pipe',
    });
    children.push(child);
    const printed: string[] = [];
    child.stdout.setEncoding('utf8').on('data', (text: string) => printed.push(text));
    const exited = once(child, 'close') as Promise<[code: number | null, signal: string | null]>;
    const prints = (text: string): Promise<void> =>
      new Promise((resolve) => {
        const look = (): void => {
          if (printed.join('').includes(text)) resolve();
        };
        child.stdout.on('data', look);
        look();
      });
    return { child, exited, prints, printed: () => printed.join('') };
  }

  function pingsFor(list: string): number {
    return server.received.filter(
      ({ operation, query }) => operation === 'ping' && query.get('job_id') === list,
    ).length;
  }

  for (const channel of [true, false]) {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      test(`finishes its job and exits at ${signal}, ${channel ? 'on the channel' : 'by the public protocol'}`, {
        timeout: 20_000,
      }, async () => {
        server.offersChannel = channel;
        const job = server.submit({});
        const { child, exited, prints } = start('waits');
        await server.waitFor(() => job.state === 'given');
        child.kill(signal);
        await prints('The worker stops.');
        if (channel) await server.waitFor(() => server.count('Q') > 0);
        const late = server.submit({});
        child.stdin.write('go on\n');
        assert.deepEqual(await exited, [0, null]);
        assert.deepEqual([job.results[0]?.body, late.state], [{ output: 'drained' }, 'waiting']);
      });
    }
  }

  test('pings while its handler blocks the event loop', { timeout: 20_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-worker-'));
    server.acknowledgesResults = false;
    const before = server.submit(process.execPath);
    start('blocks', { RUNPOD_PING_INTERVAL: '100' });
    await server.waitFor(
      () =>
        server.received.filter(({ operation, text }) => operation === 'L' && text === before.id).length > 1,
    );
    const job = server.submit(join(folder, 'go'));
    const heartbeats = server.count('L');
    // A job whose result is not acknowledged is listed as well.
    await server.waitFor(() => pingsFor(`${job.id},${before.id}`) > 2);
    assert.ok(server.count('L') <= heartbeats + 1);
    writeFileSync(join(folder, 'go'), '');
    assert.deepEqual((await server.result(job)).body, { output: 'unblocked' });
    rmSync(folder, { recursive: true });
  });

  test('pings where it runs several jobs at a time and the first never awaits', {
    timeout: 20_000,
  }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-worker-'));
    const job = server.submit(join(folder, 'go'));
    start('blocks', { RUNPOD_PING_INTERVAL: '100', TEST_CONCURRENCY: '2' });
    await server.waitFor(() => pingsFor(job.id) > 2);
    writeFileSync(join(folder, 'go'), '');
    assert.deepEqual((await server.result(job)).body, { output: 'unblocked' });
    rmSync(folder, { recursive: true });
  });

  test('pings where its program blocks the event loop before there is a job', {
    timeout: 20_000,
  }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-worker-'));
    start('echo', { RUNPOD_PING_INTERVAL: '100', TEST_BUSY_UNTIL: join(folder, 'go') });
    await server.waitFor(() => server.count('ping') > 2);
    const job = server.submit(1);
    writeFileSync(join(folder, 'go'), '');
    assert.deepEqual((await server.result(job)).body, { output: 1 });
    rmSync(folder, { recursive: true });
  });

  test('two in one process: the idle one lets the other finish its job', {
    timeout: 20_000,
  }, async () => {
    const job = server.submit({});
    const { child, exited, printed } = start('waits', { TEST_SECOND: 'worker-2' });
    await server.waitFor(() => job.state === 'given' && server.channels.size === 2);
    child.kill();
    await server.waitFor(() => server.channels.size === 1);
    while (!printed().includes('The worker has stopped.')) await once(child.stdout, 'data');
    child.stdin.write('go on\n');
    assert.deepEqual(await exited, [0, null]);
    assert.deepEqual(job.results[0]?.body, { output: 'drained' });
  });

  test('aborts its jobs at the second signal and exits', { timeout: 20_000 }, async () => {
    const job = server.submit({});
    const { child, exited, printed } = start('listens');
    await server.waitFor(() => job.progress.length > 0);
    child.kill('SIGTERM');
    await server.waitFor(() => server.count('Q') > 0);
    child.kill('SIGTERM');
    assert.deepEqual(await exited, [143, null]);
    assert.match(printed(), /^aborted$/m);
    assert.deepEqual(job.results, []);
  });

  test('exits with 1 where a check fails, after reporting it', { timeout: 20_000 }, async () => {
    const { exited, printed } = start('echo', { TEST_UNFIT: '1' });
    assert.deepEqual(await exited, [1, null]);
    assert.deepEqual(JSON.parse(server.received.find(({ operation }) => operation === 'U')?.text ?? ''), {
      check: 'isFit',
      reason: 'Error: unfit',
    });
    assert.match(printed(), /This worker is unhealthy/);
  });

  test('exits with 0 after a job that asked for a new worker', { timeout: 20_000 }, async () => {
    const job = server.submit({});
    const { exited } = start('refreshes');
    assert.deepEqual(await exited, [0, null]);
    assert.deepEqual(job.results[0]?.body, { output: { done: 1 }, stopPod: true });
  });

  test('logs lines around a job, so that its output can be attributed to it', {
    timeout: 20_000,
  }, async () => {
    const job = server.submit({});
    const { child, exited, printed } = start('fails');
    await server.result(job);
    child.kill();
    await exited;
    const lines = printed()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { requestId: string | null; message: string; level: string });
    assert.deepEqual(
      lines
        .filter(({ requestId }) => requestId === job.id)
        .map(({ message, level }) => [message.slice(0, 15), level]),
      [
        ['Started.', 'INFO'],
        ['The job failed:', 'ERROR'],
        ['Finished.', 'INFO'],
      ],
    );
  });

  test('logs lines around a cancelled job too', { timeout: 20_000 }, async () => {
    const job = server.submit({});
    const { prints } = start('gives up');
    await server.waitFor(() => job.state === 'given');
    server.cancel(job);
    await prints(`"requestId":"${job.id}","message":"Finished."`);
  });
});

describe('without a platform', () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'berth-worker-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  function run(handler: string, ...words: string[]) {
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...words], {
      cwd: folder,
      env: { TEST_HANDLER: handler },
      encoding: 'utf8',
    });
    return [status, stdout, stderr];
  }

  test('the handler runs once, on the input of the command line or of the file', () => {
    assert.deepEqual(run('echo', '--test_input', '{"input": {"a": "ü"}}'), [
      0,
      'result {"output":{"a":"ü"}}\n',
      '',
    ]);
    assert.deepEqual(run('counts', '--test_input={"input": 1}'), [
      0,
      'chunk {"output":1}\nchunk {"output":2}\nresult {"output":[1,2]}\n',
      '',
    ]);
    writeFileSync(join(folder, 'test_input.json'), '{"id": "mine", "input": "from the file"}');
    assert.deepEqual(run('echo'), [0, 'result {"output":"from the file"}\n', '']);
  });

  test('it exits with 1 where the job fails or there is none', () => {
    const [status, out, err] = run('fails', '--test_input', '{"input": 1}');
    assert.deepEqual([status, err], [1, 'the job failed\n']);
    assert.match(String(out), /^result \{"error":".*as it should/);
    assert.match(
      String(run('echo')),
      /^1,,there is no platform to take jobs from \(RUNPOD_WEBHOOK_GET_JOB is not set\), and nothing to try: give --test_input /,
    );
    assert.deepEqual(run('echo', '--test_input', '{'), [1, '', '--test_input is not JSON\n']);
    assert.deepEqual(run('echo', '--test_input', '[]'), [
      1,
      '',
      '--test_input has no "input": it has to be {"input": …}\n',
    ]);
  });
});
