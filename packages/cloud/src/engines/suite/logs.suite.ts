import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runToExit } from './engine-suite-fixture.ts';
import type { EngineSuiteFixture } from './engine-suite-fixture.ts';

const LINES = 100_000;

/** The output and the system lines of instances. */
export function logTests(fixture: EngineSuiteFixture): void {
  const { started, lines, output, ended, restart } = fixture;

  test('100,000 lines are logged in order', async () => {
    const id = await started(`i=0; while [ $i -lt ${LINES} ]; do i=$((i+1)); echo "line $i"; done`);
    let next = 1;
    for await (const { line } of fixture.engine.logs(id, { follow: true, source: 'container' })) {
      if (line !== `line ${next}`) assert.fail(`${line} stands where line ${next} should be`);
      next += 1;
    }
    assert.equal(next, LINES + 1);
    assert.deepEqual(
      (await lines(id, { tail: 2, source: 'container' })).map(({ line }) => line),
      [`line ${LINES - 1}`, `line ${LINES}`],
    );
  });

  test('a last line without a newline is logged', async () => {
    const id = await started('printf "one\\r\\ntwo"');
    assert.deepEqual(await output(id), ['one', 'two']);
  });

  test('a follower gets each line as it is written', async () => {
    const id = await started('echo one; while [ ! -e go ]; do sleep 0.02; done; echo two');
    const seen: string[] = [];
    for await (const { line, source } of fixture.engine.logs(id, { follow: true })) {
      if (source === 'system') continue;
      seen.push(line);
      // The exit code of this command does not matter: its instance may end first.
      if (line === 'one') await runToExit(await fixture.engine.exec(id, ['touch', 'go']));
    }
    assert.deepEqual(seen, ['one', 'two']);
  });

  test('the log can be read from any line on', async () => {
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

  test('the log has system lines and outlives the instance', async () => {
    const id = await started('echo hello');
    await fixture.engine.logSystemLine(id, 'looked at');
    await ended(id);
    await fixture.engine.logSystemLine(id, 'looked at again');
    await fixture.engine.remove(id);
    const logged = await lines(id, { follow: true });
    assert.deepEqual(
      logged.filter(({ source }) => source === 'container').map(({ line }) => line),
      ['hello'],
    );
    assert.deepEqual(
      logged.filter(({ line }) => line.startsWith('looked')).map(({ source }) => source),
      ['system', 'system'],
    );
    await restart();
    assert.deepEqual(await lines(id), logged);
    assert.deepEqual(await lines('never-there'), []);
  });

  test('the log of a removed instance can be deleted, that of an existing one stays', async () => {
    const id = await started('echo hello');
    await ended(id);
    await fixture.engine.deleteLog(id);
    assert.deepEqual(await output(id), ['hello']);
    await fixture.engine.remove(id);
    await fixture.engine.deleteLog(id);
    assert.deepEqual(await lines(id), []);
    await fixture.engine.deleteLog(id);
    await fixture.engine.deleteLog('never-there');
    await fixture.engine.deleteLog('../never-there');
    await restart();
    assert.deepEqual(await lines(id), []);
  });
}
