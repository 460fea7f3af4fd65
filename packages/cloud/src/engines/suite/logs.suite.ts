import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runToExit } from './engine-fixture.ts';
import type { EngineFixture } from './engine-fixture.ts';

const LINES = 100_000;

/** What instances say, and what is noted of them. */
export function logTests(stage: EngineFixture): void {
  const { started, lines, output, ended, restart } = stage;

  test('100,000 lines are in the log, each in its place', async () => {
    const id = await started(`i=0; while [ $i -lt ${LINES} ]; do i=$((i+1)); echo "line $i"; done`);
    let next = 1;
    for await (const { line } of stage.engine.logs(id, { follow: true, source: 'container' })) {
      if (line !== `line ${next}`) assert.fail(`${line} stands where line ${next} should be`);
      next += 1;
    }
    assert.equal(next, LINES + 1);
    assert.deepEqual(
      (await lines(id, { tail: 2, source: 'container' })).map(({ line }) => line),
      [`line ${LINES - 1}`, `line ${LINES}`],
    );
  });

  test('a last line needs no end', async () => {
    const id = await started('printf "one\\r\\ntwo"');
    assert.deepEqual(await output(id), ['one', 'two']);
  });

  test('a follower is told of each line when it comes', async () => {
    const id = await started('echo one; while [ ! -e go ]; do sleep 0.02; done; echo two');
    const seen: string[] = [];
    for await (const { line, source } of stage.engine.logs(id, { follow: true })) {
      if (source === 'system') continue;
      seen.push(line);
      // How this command ends is open: its instance may end before it.
      if (line === 'one') await runToExit(await stage.engine.exec(id, ['touch', 'go']));
    }
    assert.deepEqual(seen, ['one', 'two']);
  });

  test('the log can be taken up after any line', async () => {
    const id = await started('echo one; echo two; echo three');
    await ended(id);
    const all = await lines(id);
    const one = all.find(({ line }) => line === 'one');
    assert.deepEqual(
      (await lines(id, { after: { seq: one?.seq ?? 0 }, source: 'container' })).map(({ line }) => line),
      ['two', 'three'],
    );
    assert.deepEqual(
      all.map(({ seq }) => seq),
      Array.from(all, (_, index) => index + 1),
    );
    assert.deepEqual(
      all,
      all.toSorted((a, b) => a.ts - b.ts),
    );
  });

  test('the log has notes, and outlives the instance', async () => {
    const id = await started('echo hello');
    await stage.engine.logSystemLine(id, 'looked at');
    await ended(id);
    await stage.engine.logSystemLine(id, 'looked at again');
    await stage.engine.remove(id);
    const told = await lines(id, { follow: true });
    assert.deepEqual(
      told.filter(({ source }) => source === 'container').map(({ line }) => line),
      ['hello'],
    );
    assert.deepEqual(
      told.filter(({ line }) => line.startsWith('looked')).map(({ source }) => source),
      ['system', 'system'],
    );
    await restart();
    assert.deepEqual(await lines(id), told);
    assert.deepEqual(await lines('never-there'), []);
  });

  test('the log of an instance that was removed can be forgotten, that of one that is there stays', async () => {
    const id = await started('echo hello');
    await ended(id);
    await stage.engine.deleteLog(id);
    assert.deepEqual(await output(id), ['hello']);
    await stage.engine.remove(id);
    await stage.engine.deleteLog(id);
    assert.deepEqual(await lines(id), []);
    await stage.engine.deleteLog(id);
    await stage.engine.deleteLog('never-there');
    await stage.engine.deleteLog('../never-there');
    await restart();
    assert.deepEqual(await lines(id), []);
  });
}
