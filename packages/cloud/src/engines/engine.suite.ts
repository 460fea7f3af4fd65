import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { BerthError } from '../support/errors.ts';
import type { InstanceEngine } from './engine.ts';
import type { Address, Execution, InstanceEvent, InstanceHandle, InstanceSpec } from './instance.ts';
import type { LogLine, LogQuery } from './logs/log-line.ts';

/** What a driver brings along to be tested. */
export interface EngineUnderTest {
  /** A module that exports `openEngine(folder)`. Two engines of one folder, one after the other, are Berth before and after a restart. */
  module: URL;
  /** An image with a POSIX shell and the usual small commands. */
  shell: string;
  /** An image that it cannot run. */
  impossible: string;
  /** A GPU type of which it has two, if it has. */
  gpuTypeId?: string;
  /** A command that listens on the port in $PORT and answers `hello`. */
  listen?: readonly string[];
}

export interface EngineModule {
  openEngine(folder: string): Promise<InstanceEngine>;
}

const KEEPER = fileURLToPath(new URL('engine-keeper.ts', import.meta.url));
const LONG_GRACE_MS = 60_000;
const LINES = 100_000;
/** How long something that must come may take on a busy machine. */
const PATIENCE_MS = 20_000;

/** Resolves with the first answer that is one. */
export async function until<T>(ask: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
  const patience = AbortSignal.timeout(PATIENCE_MS);
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    patience.throwIfAborted();
    await pause(5);
  }
}

/** What every driver keeps to. Instances are shell scripts, so that the same ones run as processes and in containers. */
export function engineSuite(name: string, { module, shell, impossible, gpuTypeId, listen }: EngineUnderTest): void {
  describe(`${name} as an engine`, () => {
    let folder = '';
    let engine: InstanceEngine;
    let open: EngineModule['openEngine'];
    let count = 0;

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'berth-engine-'));
      ({ openEngine: open } = (await import(module.href)) as EngineModule);
      engine = await open(folder);
    });
    after(async () => {
      for (const { id } of await engine.list()) await engine.remove(id);
      assert.deepEqual(await engine.list(), []);
      await engine.close();
      await rm(folder, { recursive: true });
    });

    async function restart(): Promise<void> {
      await engine.close();
      engine = await open(folder);
    }

    function script(commands: string, more: Partial<InstanceSpec> = {}): InstanceSpec {
      count += 1;
      return {
        id: `i${count}`,
        labels: {},
        image: shell,
        command: { entrypoint: ['sh', '-c'], cmd: [commands] },
        env: {},
        ports: [],
        mounts: [],
        cpu: 1,
        memoryInGb: 0.5,
        gpus: null,
        containerDiskInGb: 1,
        ...more,
      };
    }

    async function started(commands: string, more: Partial<InstanceSpec> = {}): Promise<string> {
      const spec = script(commands, more);
      await engine.start(spec);
      return spec.id;
    }

    function lines(id: string, query: LogQuery = {}): Promise<LogLine[]> {
      return Array.fromAsync(engine.logs(id, query));
    }

    /** What it wrote, to its end. */
    async function output(id: string): Promise<string[]> {
      return (await lines(id, { follow: true, source: 'container' })).map((line) => line.line);
    }

    /** Resolves when it has written this line. */
    async function said(id: string, wanted: string): Promise<void> {
      for await (const { line } of engine.logs(id, { follow: true }, AbortSignal.timeout(PATIENCE_MS))) if (line === wanted) return;
      assert.fail(`${id} never wrote ${wanted}, but ${JSON.stringify((await lines(id)).map((line) => line.line))}`);
    }

    async function ended(id: string): Promise<InstanceEvent> {
      const { promise, resolve } = Promise.withResolvers<InstanceEvent>();
      const leave = engine.watch((event) => {
        if (event.id === id && event.status === 'exited') resolve(event);
      });
      const known = (await engine.list()).find((instance) => instance.id === id);
      assert.ok(known, `${id} is not known`);
      if (known.status === 'exited') resolve({ id, status: 'exited', exitCode: known.exitCode, signal: known.signal, at: known.endedAt ?? 0 });
      const event = await promise;
      leave();
      return event;
    }

    async function finished(execution: Execution): Promise<{ exitCode: number; stdout: string; stderr: string }> {
      execution.stdin.end();
      const [stdout, stderr, { exitCode }] = await Promise.all([text(execution.stdout), text(execution.stderr), execution.exited]);
      return { exitCode, stdout, stderr };
    }

    function hasCode(code: string, message = /./): (error: unknown) => boolean {
      return (error) => error instanceof BerthError && error.code === code && message.test(error.message);
    }

    test('runs a command to its end', async () => {
      const id = await started('echo out; echo err >&2; exit 3', { labels: { pod: 'p1' } });
      const { exitCode, signal } = await ended(id);
      assert.deepEqual([exitCode, signal], [3, null]);
      // The two streams travel separately: only within one of them is there an order.
      assert.deepEqual((await output(id)).sort(), ['err', 'out']);
      const instance = (await engine.list()).find((one) => one.id === id);
      assert.deepEqual([instance?.status, instance?.exitCode, instance?.labels, instance?.image], ['exited', 3, { pod: 'p1' }, shell]);
      assert.ok((instance?.endedAt ?? 0) >= (instance?.startedAt ?? Infinity));
    });

    test('a crash is told with its signal', async () => {
      const id = await started('kill -9 $$');
      const { exitCode, signal } = await ended(id);
      assert.deepEqual([exitCode, signal], [137, 'SIGKILL']);
    });

    test('a command is a list of words, with nothing between it and the program', async () => {
      const words = ['two words', '$HOME', '*', '', "it's", '-n', 'ü\ttab'];
      const id = await started('', { command: { entrypoint: ['printf', '<%s>\\n'], cmd: words } });
      assert.deepEqual(await output(id), words.map((word) => `<${word}>`));
    });

    test('sees its own environment and nothing of Berth', async () => {
      process.env['BERTH_SUITE_SECRET'] = 'not for instances';
      const id = await started('', { command: { entrypoint: ['env'], cmd: [] }, env: { GREETING: 'hello there', EMPTY: '', 'dotted.name': 'kept' } });
      const env = new Map((await output(id)).map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
      assert.deepEqual([env.get('GREETING'), env.get('EMPTY'), env.get('dotted.name')], ['hello there', '', 'kept']);
      assert.ok(env.has('PATH') && env.has('HOME'));
      assert.equal(env.has('BERTH_SUITE_SECRET'), false);
      delete process.env['BERTH_SUITE_SECRET'];
    });

    test('a second start of the same id is the same instance', async () => {
      const spec = script('echo once; sleep 600');
      const first = await engine.start(spec);
      assert.deepEqual(await engine.start({ ...spec, env: { OTHER: '1' } }), first);
      await said(spec.id, 'once');
      assert.equal((await lines(spec.id, { source: 'container' })).length, 1);
      await engine.remove(spec.id);
    });

    test('two starts at once are one', async () => {
      const spec = script('echo once; sleep 600');
      const [first, second] = await Promise.all([engine.start(spec), engine.start(spec)]);
      assert.deepEqual(first, second);
      await said(spec.id, 'once');
      assert.equal((await engine.list()).filter(({ id }) => id === spec.id).length, 1);
      await engine.remove(spec.id);
    });

    test('an instance that has ended can be started again, on a fresh disk', async () => {
      const spec = script('ls -A; echo > left-over; exit 1');
      const first = await engine.start(spec);
      await ended(spec.id);
      const second = await engine.start(spec);
      assert.notDeepEqual(second, first);
      assert.equal(await engine.adopt(first), undefined);
      await ended(spec.id);
      assert.deepEqual(await output(spec.id), [], 'nothing of the first run is there');
    });

    test('stop lets it finish within the grace period', async () => {
      const id = await started('trap "echo bye; exit 5" TERM; echo ready; while :; do sleep 0.05; done');
      await said(id, 'ready');
      await engine.stop(id, LONG_GRACE_MS);
      assert.equal((await ended(id)).exitCode, 5);
      assert.equal((await output(id)).at(-1), 'bye');
    });

    test('what ignores the request is ended after the grace period', async () => {
      const id = await started('trap "" TERM; (trap "" TERM; sleep 601) & echo ready; while :; do sleep 602; done');
      await said(id, 'ready');
      const since = performance.now();
      await engine.stop(id, 300);
      assert.ok(performance.now() - since >= 295);
      assert.deepEqual([(await ended(id)).exitCode, (await ended(id)).signal], [137, 'SIGKILL']);
    });

    test('a second stop may shorten the wait', async () => {
      const id = await started('trap "" TERM; echo ready; while :; do sleep 0.05; done');
      await said(id, 'ready');
      const stopping = engine.stop(id, LONG_GRACE_MS);
      await engine.stop(id, 0);
      await stopping;
      assert.equal((await ended(id)).exitCode, 137);
    });

    test('stop and remove of what is not there are done at once', async () => {
      await engine.stop('never-there', LONG_GRACE_MS);
      await engine.remove('never-there');
      const id = await started('exit 0');
      await ended(id);
      await engine.stop(id, LONG_GRACE_MS);
      await engine.remove(id);
      await engine.remove(id);
    });

    test('100,000 lines are in the log, each in its place', async () => {
      const id = await started(`i=0; while [ $i -lt ${LINES} ]; do i=$((i+1)); echo "line $i"; done`);
      let next = 1;
      for await (const { line } of engine.logs(id, { follow: true, source: 'container' })) {
        if (line !== `line ${next}`) assert.fail(`${line} stands where line ${next} should be`);
        next += 1;
      }
      assert.equal(next, LINES + 1);
      assert.deepEqual((await lines(id, { tail: 2, source: 'container' })).map(({ line }) => line), [`line ${LINES - 1}`, `line ${LINES}`]);
    });

    test('a last line needs no end', async () => {
      const id = await started('printf "one\\r\\ntwo"');
      assert.deepEqual(await output(id), ['one', 'two']);
    });

    test('a follower is told of each line when it comes', async () => {
      const id = await started('echo one; while [ ! -e go ]; do sleep 0.02; done; echo two');
      const seen: string[] = [];
      for await (const { line, source } of engine.logs(id, { follow: true })) {
        if (source === 'system') continue;
        seen.push(line);
        // How this command ends is open: its instance may end before it.
        if (line === 'one') await finished(await engine.exec(id, ['touch', 'go']));
      }
      assert.deepEqual(seen, ['one', 'two']);
    });

    test('the log can be taken up after any line', async () => {
      const id = await started('echo one; echo two; echo three');
      await ended(id);
      const all = await lines(id);
      const one = all.find(({ line }) => line === 'one');
      assert.deepEqual((await lines(id, { after: { seq: one?.seq ?? 0 }, source: 'container' })).map(({ line }) => line), ['two', 'three']);
      assert.deepEqual(all.map(({ seq }) => seq), Array.from(all, (_, index) => index + 1));
      assert.deepEqual(all, all.toSorted((a, b) => a.ts - b.ts));
    });

    test('the log has notes, and outlives the instance', async () => {
      const id = await started('echo hello');
      await engine.note(id, 'looked at');
      await ended(id);
      await engine.note(id, 'looked at again');
      await engine.remove(id);
      const told = await lines(id, { follow: true });
      assert.deepEqual(told.filter(({ source }) => source === 'container').map(({ line }) => line), ['hello']);
      assert.deepEqual(told.filter(({ line }) => line.startsWith('looked')).map(({ source }) => source), ['system', 'system']);
      await restart();
      assert.deepEqual(await lines(id), told);
      assert.deepEqual(await lines('never-there'), []);
    });

    test('the log of an instance that was removed can be forgotten, that of one that is there stays', async () => {
      const id = await started('echo hello');
      await ended(id);
      await engine.forgetLog(id);
      assert.deepEqual(await output(id), ['hello']);
      await engine.remove(id);
      await engine.forgetLog(id);
      assert.deepEqual(await lines(id), []);
      await engine.forgetLog(id);
      await engine.forgetLog('never-there');
      await engine.forgetLog('../never-there');
      await restart();
      assert.deepEqual(await lines(id), []);
    });

    test('a command runs beside it', async () => {
      const id = await started('echo > here; echo ready; sleep 600', { env: { GREETING: 'hello' } });
      await said(id, 'ready');
      const execution = await engine.exec(id, ['sh', '-c', 'ls; echo $GREETING $MORE; cat; echo oops >&2; exit 4'], { env: { MORE: 'there' } });
      execution.stdin.write('from outside\n');
      assert.deepEqual(await finished(execution), { exitCode: 4, stdout: 'here\nhello there\nfrom outside\n', stderr: 'oops\n' });
      await restart();
      assert.equal((await finished(await engine.exec(id, ['sh', '-c', 'echo $GREETING']))).stdout, 'hello\n');
      const long = await engine.exec(id, ['sleep', '600']);
      await engine.remove(id);
      assert.notEqual((await long.exited).exitCode, 0);
      await assert.rejects(engine.exec(id, ['true']), hasCode('not-found'));
    });

    test('a command cannot run where nothing runs', async () => {
      const id = await started('exit 0');
      await ended(id);
      await assert.rejects(engine.exec(id, ['true']), hasCode('state'));
    });

    test('a command can have a terminal', async (context) => {
      if (!engine.abilities.terminal) return context.skip('this engine has none');
      const id = await started('sleep 600');
      const execution = await engine.exec(id, ['sh', '-c', 'stty size; read go; stty size; tty >/dev/null && echo terminal; exit 6'], { tty: { columns: 91, rows: 33 } });
      const shown = text(execution.stdout);
      await execution.resize({ columns: 120, rows: 40 });
      execution.stdin.write('go\n');
      assert.equal((await execution.exited).exitCode, 6);
      const words = (await shown).split(/\r?\n/);
      assert.ok(words.includes('40 120') && words.includes('terminal'), JSON.stringify(words));
      await engine.remove(id);
    });

    test('a command that is ended takes along what it started, in a terminal and without one', async () => {
      const id = await started('sleep 600');
      const ways = engine.abilities.terminal ? [{}, { tty: { columns: 80, rows: 24 } }] : [{}];
      for (const options of ways) {
        const execution = await engine.exec(id, ['sh', '-c', 'trap "" HUP TERM; sleep 601 & echo up; wait; wait'], options);
        execution.stdout.setEncoding('utf8');
        for await (const shown of execution.stdout) if (String(shown).includes('up')) break;
        execution.kill('SIGKILL');
        const { exitCode } = await execution.exited;
        assert.notEqual(exitCode, 0);
        const look = async (): Promise<string> => (await finished(await engine.exec(id, ['sh', '-c', 'for p in /proc/[0-9]*; do grep -qs "sleep.60[1]" $p/cmdline && grep -qs "$MINE" $p/environ && echo alive; done; true'], { env: { MINE: id } }))).stdout;
        await until(async () => (await look()) === '' || undefined);
      }
      await engine.remove(id);
    });

    test('a command that is not there is refused, in a terminal and without one', async () => {
      const id = await started('sleep 600');
      for (const options of [{}, ...(engine.abilities.terminal ? [{ tty: { columns: 80, rows: 24 } }] : [])]) await assert.rejects(engine.exec(id, ['no-such-command'], options), hasCode('rule', /no-such-command/));
      await engine.remove(id);
    });

    test('a declared port is reached when somebody listens there', async (context) => {
      if (listen === undefined) return context.skip('this engine brought no program that listens');
      const [program = '', ...args] = listen;
      const command = { entrypoint: [program], cmd: args };
      const ports = [{ port: 8000, protocol: 'http' as const, announceAs: 'PORT' }];
      const [first, second] = [script('', { command, ports }), script('', { command, ports })];
      const silent = await started('sleep 600', { ports });
      await Promise.all([engine.start(first), engine.start(second)]);
      const addresses: Address[] = [];
      for (const { id } of [first, second]) {
        const address = await until(() => engine.address(id, 8000));
        assert.equal(await text(connect(address.port, address.host)), 'hello');
        addresses.push(address);
      }
      assert.notDeepEqual(addresses[0], addresses[1]);
      assert.equal(await engine.address(silent, 8000), undefined);
      assert.equal(await engine.address(first.id, 8001), undefined);
      await restart();
      assert.deepEqual(await engine.address(first.id, 8000), addresses[0]);
      for (const id of [first.id, second.id, silent]) await engine.remove(id);
      assert.equal(await engine.address(first.id, 8000), undefined);
    });

    test('a mounted folder is kept, the container disk is not', async () => {
      const source = join(folder, 'volume');
      await mkdir(source, { recursive: true });
      await writeFile(join(source, 'given'), 'from outside');
      const path = `/berth-suite-${process.pid}`;
      const mounts = [{ source, path }];
      const write = `at=${path}; [ -e $at/given ] || at=$BERTH_ROOT${path}; cat $at/given; echo; echo inside > $at/made; echo > scratch`;
      const id = await started(write, { mounts });
      assert.deepEqual(await output(id), ['from outside']);
      await engine.remove(id);
      assert.equal(await readFile(join(source, 'made'), 'utf8'), 'inside\n');
    });

    test('what an instance uses can be asked', async () => {
      const id = await started('echo ready; while :; do :; done');
      await said(id, 'ready');
      const busy = await until(async () => {
        const usage = await engine.usage(id);
        return usage !== undefined && usage.cpu > 0.1 && usage;
      });
      assert.ok(busy.cpu < 4 && busy.memoryInBytes > 100_000 && busy.gpus.length === 0, JSON.stringify(busy));
      await engine.remove(id);
      assert.equal(await engine.usage(id), undefined);
    });

    test('every change is told in its order', async () => {
      const events: InstanceEvent[] = [];
      const leave = engine.watch((event) => events.push(event));
      const id = await started('exit 7');
      await ended(id);
      leave();
      await engine.remove(await started('exit 0'));
      const own = events.filter((event) => event.id === id);
      assert.deepEqual(own.map(({ status, exitCode }) => [status, exitCode]), [['starting', null], ['running', null], ['exited', 7]]);
      assert.deepEqual(events.filter((event) => event.id !== id), []);
    });

    test('what cannot run is refused with a reason, and leaves nothing', async () => {
      assert.match(engine.imageProblem(impossible) ?? '', /./);
      assert.equal(engine.imageProblem(shell), undefined);
      const spec = script('true', { image: impossible });
      await assert.rejects(engine.start(spec), hasCode('rule', new RegExp(RegExp.escape(impossible))));
      assert.equal((await engine.list()).some(({ id }) => id === spec.id), false);
      await assert.rejects(engine.start({ ...spec, image: shell, command: { entrypoint: [], cmd: ['no-such-command'] } }), hasCode('rule', /no-such-command/));
      await assert.rejects(engine.start({ ...spec, id: '../elsewhere' }), hasCode('rule'));
    });

    test('GPUs are held while an instance runs', async (context) => {
      if (gpuTypeId === undefined) return context.skip('this engine brought no GPU');
      const free = async (): Promise<number | undefined> => (await engine.capacity()).gpus.find((gpu) => gpu.gpuTypeId === gpuTypeId)?.free;
      assert.equal(await free(), 2);
      const ask = (amount: number): InstanceSpec => script('echo "$CUDA_VISIBLE_DEVICES|$NVIDIA_VISIBLE_DEVICES"; echo ready; sleep 600', { gpus: { typeId: gpuTypeId, count: amount } });
      const [first, second] = [ask(1), ask(1)];
      await Promise.all([engine.start(first), engine.start(second)]);
      assert.equal(await free(), 0);
      await assert.rejects(engine.start(ask(1)), hasCode('capacity'));
      await assert.rejects(engine.start(ask(3)), hasCode('capacity'));
      await Promise.all([said(first.id, 'ready'), said(second.id, 'ready')]);
      const seen = [];
      for (const { id } of [first, second]) seen.push((await lines(id, { source: 'container' }))[0]?.line);
      assert.equal(new Set(seen).size, 2, String(seen));
      for (const pair of seen) assert.match(pair ?? '', /^(\d+)\|\1$/);
      await restart();
      assert.equal(await free(), 0);
      await engine.stop(first.id, 0);
      assert.equal(await free(), 1);
      await engine.remove(second.id);
      assert.equal(await free(), 2);
    });

    test('cores are shared where the engine says so', async (context) => {
      if (!engine.abilities.sharesCores) return context.skip('this engine does not');
      const ids = await Promise.all(Array.from({ length: 21 }, () => started('sleep 600', { cpu: 2, memoryInGb: 1 })));
      assert.equal((await engine.list()).filter(({ id, status }) => ids.includes(id) && status === 'running').length, 21);
      await Promise.all(ids.map((id) => engine.remove(id)));
    });

    test('after a restart everything goes on', async () => {
      const running = script('echo before; while [ ! -e go ]; do sleep 0.02; done; echo after; exit 9', { labels: { worker: 'w1' } });
      const handle = JSON.parse(JSON.stringify(await engine.start(running))) as InstanceHandle;
      const gone = script('exit 0');
      const goneHandle = await engine.start(gone);
      await engine.remove(gone.id);
      await said(running.id, 'before');
      await restart();
      const instance = await engine.adopt(handle);
      assert.deepEqual([instance?.status, instance?.labels, instance?.handle], ['running', { worker: 'w1' }, handle]);
      assert.equal(await engine.adopt(goneHandle), undefined);
      assert.deepEqual(await engine.start(running), handle);
      await finished(await engine.exec(running.id, ['touch', 'go']));
      assert.equal((await ended(running.id)).exitCode, 9);
      assert.deepEqual(await output(running.id), ['before', 'after']);
    });

    test('when Berth is killed its instances go on, and nothing that they say is lost', async () => {
      await engine.close();
      const source = join(folder, 'meeting-point');
      await mkdir(source);
      const meeting = { mounts: [{ source, path: `/berth-meeting-${process.pid}` }] };
      const at = `at=/berth-meeting-${process.pid}; [ -e $at ] || at=$BERTH_ROOT$at;`;
      const speaking = script(`${at} i=0; while [ ! -e $at/go ]; do i=$((i+1)); echo "line $i"; sleep 0.002; done; echo "last $i"; echo > $at/done1; exit 11`, meeting);
      const silent = script(`${at} while [ ! -e $at/go ]; do sleep 0.01; done; echo unheard; echo > $at/done2; exit 12`, meeting);
      const keeper = spawn(process.execPath, [KEEPER, module.href, folder, JSON.stringify([speaking, silent])], { stdio: ['ignore', 'pipe', 'inherit'] });
      const [answer] = (await once(keeper.stdout, 'data')) as [Buffer];
      const handles = JSON.parse(answer.toString()) as InstanceHandle[];
      keeper.kill('SIGKILL');
      await once(keeper, 'exit');
      engine = await open(folder);
      for (const handle of handles) assert.equal((await engine.adopt(handle))?.status, 'running');
      await said(speaking.id, 'line 20');

      // What ends while Berth is away ends unseen.
      await engine.close();
      await writeFile(join(source, 'go'), '');
      await until(() => existsSync(join(source, 'done1')) && existsSync(join(source, 'done2')));
      engine = await open(folder);
      for (const [index, code] of [11, 12].entries()) {
        const handle = handles[index] as InstanceHandle;
        assert.equal((await ended(handle.id)).exitCode, code);
        const known = await engine.adopt(handle);
        assert.deepEqual([known?.status, known?.exitCode], ['exited', code]);
      }
      assert.deepEqual(await output(silent.id), ['unheard']);
      const spoken = await output(speaking.id);
      const last = Number(spoken.at(-1)?.split(' ')[1]);
      assert.ok(last >= 20, `it ended with ${String(spoken.at(-1))}`);
      assert.deepEqual(spoken, [...Array.from({ length: last }, (_, index) => `line ${index + 1}`), `last ${last}`]);
    });

    test('remove leaves nothing', async () => {
      const tag = `6${process.pid}`;
      const id = await started(`trap "" TERM HUP; sleep ${tag}1 & (sleep ${tag}2 &) ; echo ready; while :; do sleep ${tag}3; done`);
      await said(id, 'ready');
      await engine.remove(id);
      assert.equal((await engine.list()).some((instance) => instance.id === id), false);
      assert.equal(await engine.usage(id), undefined);
      await assert.rejects(engine.note(id, 'anyone?'), hasCode('not-found'));
    });
  });
}
