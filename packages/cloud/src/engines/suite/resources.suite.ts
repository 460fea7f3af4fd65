import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { InstanceAddress, InstanceSpec } from '../instance.ts';
import { hasCode, waitUntil } from './engine-suite-fixture.ts';
import type { EngineSuiteFixture } from './engine-suite-fixture.ts';

/** Ports, folders, CPU and GPUs of instances. */
export function resourceTests(fixture: EngineSuiteFixture): void {
  const { started, script, waitForLine, lines, output, restart, gpuTypeId, listenCommand } = fixture;

  test('a declared port has an address once a process listens on it', async (context) => {
    if (listenCommand === undefined) return context.skip('this engine has no program that listens');
    const [program = '', ...args] = listenCommand;
    const command = { entrypoint: [program], cmd: args };
    const ports = [{ port: 8000, protocol: 'http' as const, listenPortVariable: 'PORT' }];
    const [first, second] = [script('', { command, ports }), script('', { command, ports })];
    const silent = await started('sleep 600', { ports });
    await Promise.all([fixture.engine.start(first), fixture.engine.start(second)]);
    const addresses: InstanceAddress[] = [];
    for (const { id } of [first, second]) {
      const address = await waitUntil(() => fixture.engine.address(id, 8000));
      assert.equal(await text(connect(address.port, address.host)), 'hello');
      addresses.push(address);
    }
    assert.notDeepEqual(addresses[0], addresses[1]);
    assert.equal(await fixture.engine.address(silent, 8000), undefined);
    assert.equal(await fixture.engine.address(first.id, 8001), undefined);
    await restart();
    assert.deepEqual(await fixture.engine.address(first.id, 8000), addresses[0]);
    for (const id of [first.id, second.id, silent]) await fixture.engine.remove(id);
    assert.equal(await fixture.engine.address(first.id, 8000), undefined);
  });

  test('a mounted folder is kept, the container disk is not', async () => {
    const source = join(fixture.folder, 'volume');
    await mkdir(source, { recursive: true });
    await writeFile(join(source, 'given'), 'from outside');
    const path = `/berth-suite-${process.pid}`;
    const mounts = [{ source, path }];
    const write =
      `at=${path}; [ -e $at/given ] || at=$BERTH_ROOT${path}; cat $at/given; echo; echo inside > ` +
      '$at/made; echo > scratch';
    const id = await started(write, { mounts });
    assert.deepEqual(await output(id), ['from outside']);
    await fixture.engine.remove(id);
    assert.equal(await readFile(join(source, 'made'), 'utf8'), 'inside\n');
  });

  test('an instance that writes more than its container disk or its volume has is ended, and the log says why', async () => {
    // There the kubelet measures the container disk, and a volume is a claim with a limit of its own.
    const isKubernetes = fixture.engine.kind === 'kubernetes';
    // The guard may look before all is written.
    const diskReason = isKubernetes
      ? /^The node evicted it: Pod ephemeral local storage usage exceeds/
      : /^No space: it has written [2-6]\d\.\d MB to its container disk; the limit is 0\.02 GB\.$/;
    const source = join(fixture.folder, 'small-volume');
    const path = `/berth-small-${process.pid}`;
    const mounts = [{ source, path, volume: { id: 'v1', sizeInGb: 0.02, shared: false } }];
    const write = (file: string): string =>
      `head -c 60000000 /dev/zero > ${file}; echo written; exec sleep 600`;
    const within = await started(write('file'), { containerDiskInGb: 0.1 });
    const disk = await started(write('file'), { containerDiskInGb: 0.02 });
    // What the volume held at the start is not this run's own.
    const volumes = isKubernetes
      ? []
      : [
          await started(`at=${path}; [ -d $at ] || at=$BERTH_ROOT${path}; sleep 7; ${write('$at/file')}`, {
            mounts,
          }),
        ];
    for (const id of [disk, ...volumes]) {
      const reason =
        id === disk
          ? diskReason
          : /^No space: it has written [2-6]\d\.\d MB to the volume at .*; the limit is 0\.02 GB\.$/;
      // The kubelet may say that it evicted a pod before it says how its container ended.
      const ended = isKubernetes ? /^(SIG(TERM|KILL))?$/ : /^SIG(TERM|KILL)$/;
      assert.match((await fixture.ended(id)).signal ?? '', ended);
      const all = (await lines(id, { source: 'system' })).map(({ line }) => line);
      assert.ok(
        all.some((line) => reason.test(line)),
        all.join('\n'),
      );
    }
    const running = (await fixture.engine.list()).find(({ id }) => id === within);
    assert.equal(running?.status, 'running');
    for (const id of [within, disk, ...volumes]) await fixture.engine.remove(id);
  });

  test('usage reports what an instance uses', async () => {
    const id = await started('echo ready; while :; do :; done');
    await waitForLine(id, 'ready');
    const busy = await waitUntil(async () => {
      const usage = await fixture.engine.usage(id);
      return usage !== undefined && usage.cpu > 0.1 && usage;
    });
    assert.ok(busy.cpu < 4 && busy.memoryInBytes > 100_000 && busy.gpus.length === 0, JSON.stringify(busy));
    await fixture.engine.remove(id);
    assert.equal(await fixture.engine.usage(id), undefined);
  });

  test('GPUs are allocated while an instance runs', async (context) => {
    if (gpuTypeId === undefined) return context.skip('this engine has no GPU');
    const free = async (): Promise<number | undefined> =>
      (await fixture.engine.capacity()).gpus.find((gpu) => gpu.gpuTypeId === gpuTypeId)?.free;
    assert.equal(await free(), 2);
    const request = (amount: number): InstanceSpec =>
      script('echo "$CUDA_VISIBLE_DEVICES|$NVIDIA_VISIBLE_DEVICES"; echo ready; sleep 600', {
        gpus: { typeId: gpuTypeId, count: amount },
      });
    const [first, second] = [request(1), request(1)];
    await Promise.all([fixture.engine.start(first), fixture.engine.start(second)]);
    assert.equal(await free(), 0);
    await assert.rejects(fixture.engine.start(request(1)), hasCode('capacity'));
    await assert.rejects(fixture.engine.start(request(3)), hasCode('capacity'));
    await Promise.all([waitForLine(first.id, 'ready'), waitForLine(second.id, 'ready')]);
    const seen = [];
    for (const { id } of [first, second]) seen.push((await lines(id, { source: 'container' }))[0]?.line);
    assert.equal(new Set(seen).size, 2, String(seen));
    for (const pair of seen) assert.match(pair ?? '', /^(\d+)\|\1$/);
    await restart();
    assert.equal(await free(), 0);
    await fixture.engine.stop(first.id, 0);
    assert.equal(await free(), 1);
    await fixture.engine.remove(second.id);
    assert.equal(await free(), 2);
  });

  test('cores are shared where the engine says so', async (context) => {
    if (!fixture.engine.capabilities.sharesCores) return context.skip('this engine does not share cores');
    const ids = await Promise.all(
      Array.from({ length: 21 }, () => started('sleep 600', { cpu: 2, memoryInGb: 1 })),
    );
    assert.equal(
      (await fixture.engine.list()).filter(({ id, status }) => ids.includes(id) && status === 'running')
        .length,
      21,
    );
    await Promise.all(ids.map((id) => fixture.engine.remove(id)));
  });
}
