import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceEvent } from '../instance.ts';
import { hasCode } from './engine-suite-fixture.ts';
import type { EngineSuiteFixture } from './engine-suite-fixture.ts';

const LONG_GRACE_MS = 60_000;

/** Starting, stopping and removing instances. */
export function lifecycleTests(fixture: EngineSuiteFixture): void {
  const { started, script, waitForLine, lines, output, ended, shellImage, unsupportedImage } = fixture;

  test('runs a command to its end', async () => {
    const id = await started('echo out; echo err >&2; exit 3', { labels: { pod: 'p1' } });
    const { exitCode, signal } = await ended(id);
    assert.deepEqual([exitCode, signal], [3, null]);
    // stdout and stderr are read separately: order is kept only within one of them.
    assert.deepEqual((await output(id)).sort(), ['err', 'out']);
    const instance = (await fixture.engine.list()).find((one) => one.id === id);
    assert.deepEqual(
      [instance?.status, instance?.exitCode, instance?.labels, instance?.image],
      ['exited', 3, { pod: 'p1' }, shellImage],
    );
    assert.ok((instance?.endedAt ?? 0) >= (instance?.startedAt ?? Infinity));
  });

  test('reports that the image is ready before the instance runs', async () => {
    const spec = script('sleep 600');
    const events: string[] = [];
    const unwatch = fixture.engine.watch(({ id, status }) => {
      if (id === spec.id) events.push(status);
    });
    await fixture.engine.start({ ...spec, onImageReady: () => void events.push('image ready') });
    unwatch();
    assert.deepEqual(events, ['starting', 'image ready', 'running']);
    await fixture.engine.remove(spec.id);
  });

  test('a crash is reported with its signal', async () => {
    const id = await started('kill -9 $$');
    const { exitCode, signal } = await ended(id);
    assert.deepEqual([exitCode, signal], [137, 'SIGKILL']);
  });

  test('arguments reach the program unchanged, without a shell', async () => {
    const words = ['two words', '$HOME', '*', '', "it's", '-n', 'ü\ttab'];
    const id = await started('', { command: { entrypoint: ['printf', '<%s>\\n'], cmd: words } });
    assert.deepEqual(
      await output(id),
      words.map((word) => `<${word}>`),
    );
  });

  test('sees its own environment and nothing of the environment of Berth', async () => {
    process.env['BERTH_SUITE_SECRET'] = 'not for instances';
    const id = await started('', {
      command: { entrypoint: ['env'], cmd: [] },
      env: { GREETING: 'hello there', EMPTY: '', 'dotted.name': 'kept' },
    });
    const env = new Map(
      (await output(id)).map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
    assert.deepEqual(
      [env.get('GREETING'), env.get('EMPTY'), env.get('dotted.name')],
      ['hello there', '', 'kept'],
    );
    assert.ok(env.has('PATH') && env.has('HOME'));
    assert.equal(env.has('BERTH_SUITE_SECRET'), false);
    delete process.env['BERTH_SUITE_SECRET'];
  });

  test('a second start of the same id returns the same instance', async () => {
    const spec = script('echo once; sleep 600');
    const first = await fixture.engine.start(spec);
    assert.deepEqual(await fixture.engine.start({ ...spec, env: { OTHER: '1' } }), first);
    await waitForLine(spec.id, 'once');
    assert.equal((await lines(spec.id, { source: 'container' })).length, 1);
    await fixture.engine.remove(spec.id);
  });

  test('two concurrent starts of one id start one instance', async () => {
    const spec = script('echo once; sleep 600');
    const [first, second] = await Promise.all([fixture.engine.start(spec), fixture.engine.start(spec)]);
    assert.deepEqual(first, second);
    await waitForLine(spec.id, 'once');
    assert.equal((await fixture.engine.list()).filter(({ id }) => id === spec.id).length, 1);
    await fixture.engine.remove(spec.id);
  });

  test('an ended instance can be started again, with a fresh disk', async () => {
    const spec = script('ls -A; echo > left-over; exit 1');
    const first = await fixture.engine.start(spec);
    await ended(spec.id);
    const second = await fixture.engine.start(spec);
    assert.notDeepEqual(second, first);
    assert.equal(await fixture.engine.adopt(first), undefined);
    await ended(spec.id);
    assert.deepEqual(await output(spec.id), [], 'nothing of the first run is there');
  });

  test('stop lets the instance finish within the grace period', async () => {
    const id = await started('trap "echo bye; exit 5" TERM; echo ready; while :; do sleep 0.05; done');
    await waitForLine(id, 'ready');
    await fixture.engine.stop(id, LONG_GRACE_MS);
    assert.equal((await ended(id)).exitCode, 5);
    assert.equal((await output(id)).at(-1), 'bye');
  });

  test('an instance that ignores the signal is killed after the grace period', async () => {
    const id = await started(
      'trap "" TERM; (trap "" TERM; sleep 601) & echo ready; while :; do sleep 602; done',
    );
    await waitForLine(id, 'ready');
    const since = performance.now();
    await fixture.engine.stop(id, 300);
    assert.ok(performance.now() - since >= 295);
    assert.deepEqual([(await ended(id)).exitCode, (await ended(id)).signal], [137, 'SIGKILL']);
  });

  test('a second stop may shorten the grace period', async () => {
    const id = await started('trap "" TERM; echo ready; while :; do sleep 0.05; done');
    await waitForLine(id, 'ready');
    const stopping = fixture.engine.stop(id, LONG_GRACE_MS);
    await fixture.engine.stop(id, 0);
    await stopping;
    assert.equal((await ended(id)).exitCode, 137);
  });

  test('stop and remove of an unknown or ended instance return at once', async () => {
    await fixture.engine.stop('never-there', LONG_GRACE_MS);
    await fixture.engine.remove('never-there');
    const id = await started('exit 0');
    await ended(id);
    await fixture.engine.stop(id, LONG_GRACE_MS);
    await fixture.engine.remove(id);
    await fixture.engine.remove(id);
  });

  test('every change is reported in order', async () => {
    const events: InstanceEvent[] = [];
    const unsubscribe = fixture.engine.watch((event) => events.push(event));
    const id = await started('exit 7');
    await ended(id);
    unsubscribe();
    await fixture.engine.remove(await started('exit 0'));
    const own = events.filter((event) => event.id === id);
    assert.deepEqual(
      own.map(({ status, exitCode }) => [status, exitCode]),
      [
        ['starting', null],
        ['running', null],
        ['exited', 7],
      ],
    );
    assert.deepEqual(
      events.filter((event) => event.id !== id),
      [],
    );
  });

  test('a spec that cannot run is refused with a reason and leaves nothing', async () => {
    assert.match(fixture.engine.imageProblem(unsupportedImage) ?? '', /./);
    assert.equal(fixture.engine.imageProblem(shellImage), undefined);
    const spec = script('true', { image: unsupportedImage });
    await assert.rejects(
      fixture.engine.start(spec),
      hasCode('rule', new RegExp(RegExp.escape(unsupportedImage))),
    );
    assert.equal(
      (await fixture.engine.list()).some(({ id }) => id === spec.id),
      false,
    );
    await assert.rejects(
      fixture.engine.start({
        ...spec,
        image: shellImage,
        command: { entrypoint: [], cmd: ['no-such-command'] },
      }),
      hasCode('rule', /no-such-command/),
    );
    await assert.rejects(fixture.engine.start({ ...spec, id: '../elsewhere' }), hasCode('rule'));
  });

  test('remove leaves nothing', async () => {
    const tag = `6${process.pid}`;
    const id = await started(
      `trap "" TERM HUP; sleep ${tag}1 & (sleep ${tag}2 &) ; echo ready; while :; do sleep ${tag}3; done`,
    );
    await waitForLine(id, 'ready');
    await fixture.engine.remove(id);
    assert.equal(
      (await fixture.engine.list()).some((instance) => instance.id === id),
      false,
    );
    assert.equal(await fixture.engine.usage(id), undefined);
    await assert.rejects(fixture.engine.logSystemLine(id, 'anyone?'), hasCode('not-found'));
  });
}
