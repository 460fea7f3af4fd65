import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { InstanceEngine } from '../engines/engine.ts';
import type { Instance, InstanceEvent } from '../engines/instance.ts';
import { ManualClock } from '../support/clock.ts';
import { BerthError } from '../support/errors.ts';
import { createLog } from '../support/log.ts';
import {
  CLEANUP_INTERVAL_MS,
  ENGINE_SWEEP_MS,
  RECONNECT_MS,
  RESYNC_MS,
  TICK_MS,
} from './reconcile-settings.ts';
import { Reconciler, type ReconcilePolicy } from './reconciler.ts';

const exit = (id: string): InstanceEvent => ({ id, status: 'exited', exitCode: 1, signal: null, at: 5 });

/** An engine with one instance of each kind, which the test controls. */
class FakeEngine {
  readonly removed: string[] = [];
  readonly watchers = new Set<(event: InstanceEvent) => void>();
  calls: string[] = [];
  onList: () => Promise<void> = async () => undefined;

  watch(listener: (event: InstanceEvent) => void): () => void {
    this.calls.push('watch');
    this.watchers.add(listener);
    return () => this.watchers.delete(listener);
  }

  async list(): Promise<Instance[]> {
    this.calls.push('list');
    await this.onList();
    return [
      { id: 'known', status: 'running', labels: { kind: 'pod' } },
      { id: 'orphan', status: 'running', labels: { kind: 'pod' } },
      { id: 'worker', status: 'running', labels: { kind: 'worker' } },
    ] as unknown as Instance[];
  }

  onRemove: () => Promise<void> = async () => undefined;

  async remove(id: string): Promise<void> {
    await this.onRemove();
    this.removed.push(id);
  }

  emit(event: InstanceEvent): void {
    for (const watcher of this.watchers) watcher(event);
  }
}

class FakePolicy implements ReconcilePolicy {
  readonly kind = 'pod';
  readonly idField = 'podId';
  canAdoptAgain = false;
  readonly steps: string[] = [];
  due: string[] = [];
  unreconciled: string[] = [];
  onAdopt: () => Promise<void> = async () => undefined;
  onReconcile: () => Promise<void> = async () => undefined;
  #adopted = false;

  async adopt(_engine: InstanceEngine, instances: ReadonlyMap<string, Instance>): Promise<string[]> {
    await this.onAdopt();
    this.#adopted = true;
    this.steps.push(`adopt ${[...instances.keys()].join(' ')}`);
    return ['known'];
  }

  async isOrphan({ id }: Instance): Promise<boolean> {
    return id === 'orphan';
  }

  onInstanceExited({ id }: InstanceEvent): void {
    // Like the real policies: an exit of what is not adopted says nothing.
    if (this.#adopted) this.steps.push(`exit ${id}`);
  }

  async reconcile(id: string): Promise<void> {
    this.steps.push(`reconcile ${id}`);
    await this.onReconcile();
  }

  onChangedWhileReconciling(id: string): void {
    this.steps.push(`changed ${id}`);
  }

  async listDue(): Promise<string[]> {
    return this.due;
  }

  async listUnreconciled(): Promise<string[]> {
    return this.unreconciled;
  }

  async cleanUp(): Promise<void> {
    this.steps.push('clean up');
  }

  stop(): void {
    this.#adopted = false;
    this.steps.push('stop');
  }
}

describe('the reconciler', () => {
  let clock: ManualClock;
  let engine: FakeEngine;
  let engines: Map<string, InstanceEngine>;
  let reconciler: Reconciler<FakePolicy>;
  let policy: FakePolicy;

  beforeEach((context) => {
    if ('mock' in context) context.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
    clock = new ManualClock();
    engine = new FakeEngine();
    engines = new Map([['A', engine as unknown as InstanceEngine]]);
    reconciler = new Reconciler(
      { engines, clock, log: createLog({ level: 'silent', format: 'json' }) },
      () => new FakePolicy(),
    );
    policy = reconciler.policy;
  });
  afterEach(() => reconciler.pause());

  test('watches an engine, then lists and adopts its instances, and removes orphans of its own kind', async () => {
    await reconciler.start();
    assert.deepEqual(engine.calls, ['watch', 'list']);
    assert.deepEqual(policy.steps, ['adopt known orphan', 'reconcile known']);
    assert.deepEqual(engine.removed, ['orphan']);
    assert.ok(reconciler.isConnected('A'));
  });

  test('does not wait until orphans are gone before it reconciles', async () => {
    const removal = Promise.withResolvers<void>();
    engine.onRemove = () => removal.promise;
    const started = reconciler.start();
    await turn();
    assert.deepEqual(policy.steps, ['adopt known orphan', 'reconcile known']);
    assert.deepEqual([reconciler.isConnected('A'), engine.removed], [true, []]);
    removal.resolve();
    await started;
    assert.deepEqual(engine.removed, ['orphan']);
  });

  test('connects an engine again that goes away while its orphans are removed', async (context) => {
    engine.onRemove = () => Promise.reject(new BerthError('unavailable', 'away'));
    await reconciler.start();
    assert.equal(reconciler.isConnected('A'), false);
    engine.onRemove = async () => undefined;
    context.mock.timers.tick(RECONNECT_MS);
    await turn();
    assert.deepEqual([reconciler.isConnected('A'), engine.removed], [true, ['orphan']]);
  });

  for (const moment of ['is listed', 'is adopted'] as const) {
    test(`reports an exit that happens while an engine ${moment}`, async () => {
      if (moment === 'is listed') engine.onList = async () => engine.emit(exit('known'));
      else policy.onAdopt = async () => engine.emit(exit('known'));
      await reconciler.start();
      assert.deepEqual(policy.steps, ['adopt known orphan', 'reconcile known', 'exit known']);
      engine.emit(exit('another'));
      assert.equal(policy.steps.at(-1), 'exit another');
    });
  }

  test('connects an engine that does not answer later, and starts nothing there before', async (context) => {
    let isAway = true;
    engine.onList = async () => {
      if (isAway) throw new BerthError('unavailable', 'away');
    };
    await reconciler.start();
    assert.deepEqual([reconciler.isConnected('A'), policy.steps], [false, []]);
    isAway = false;
    context.mock.timers.tick(RECONNECT_MS);
    await turn();
    assert.deepEqual([reconciler.isConnected('A'), engine.watchers.size], [true, 1]);
    assert.ok(policy.steps.includes('adopt known orphan'));
  });

  test('checks again for orphans that a former leader may have started', async (context) => {
    policy.canAdoptAgain = true;
    await reconciler.start();
    engine.removed.length = 0;
    clock.advance(ENGINE_SWEEP_MS);
    context.mock.timers.tick(TICK_MS);
    await turn();
    assert.deepEqual(engine.removed, ['orphan']);
    // Not before its time.
    context.mock.timers.tick(TICK_MS);
    await turn();
    assert.deepEqual(engine.removed, ['orphan']);
  });

  test('checks again what an engine has watched, where that is new enough', async (context) => {
    policy.canAdoptAgain = true;
    await reconciler.start();
    let known: Promise<Instance[]> | undefined = engine.list();
    engine.calls = [];
    policy.steps.length = 0;
    Object.assign(engine, { watched: () => known });
    const checkAgain = async (): Promise<void> => {
      clock.advance(ENGINE_SWEEP_MS);
      context.mock.timers.tick(TICK_MS);
      await turn();
    };
    await checkAgain();
    assert.deepEqual(engine.calls, []);
    assert.ok(policy.steps.includes('adopt known orphan'), policy.steps.join());
    known = undefined;
    await checkAgain();
    assert.deepEqual(engine.calls, ['list']);
  });

  test('connects a data center that is added, also one of an engine that is connected', async () => {
    await reconciler.start();
    engines.set('B', engine as unknown as InstanceEngine);
    assert.equal(reconciler.isConnected('B'), false);
    await reconciler.connectDataCenter('B');
    assert.ok(reconciler.isConnected('B'));
    assert.equal(engine.watchers.size, 1);
  });

  test('reconciles what is due at every tick, and all that is not as desired at every resync', async (context) => {
    await reconciler.start();
    policy.due = ['due'];
    policy.unreconciled = ['late'];
    policy.steps.length = 0;
    const tick = async (): Promise<string[]> => {
      clock.advance(TICK_MS);
      context.mock.timers.tick(TICK_MS);
      await turn();
      return policy.steps.splice(0);
    };
    assert.deepEqual(await tick(), ['clean up', 'reconcile due', 'reconcile late']);
    assert.deepEqual(await tick(), ['reconcile due']);
    clock.advance(RESYNC_MS);
    assert.deepEqual(await tick(), ['reconcile due', 'reconcile late']);
    clock.advance(CLEANUP_INTERVAL_MS);
    assert.ok((await tick()).includes('clean up'));
  });

  test('reconciles again after a change during a reconciliation, and retries a failed one', async () => {
    await reconciler.start();
    policy.steps.length = 0;
    const blocked = Promise.withResolvers<void>();
    policy.onReconcile = () => blocked.promise;
    reconciler.wake('a');
    reconciler.wake('a');
    assert.deepEqual(policy.steps, ['reconcile a', 'changed a']);
    policy.onReconcile = async () => undefined;
    blocked.reject(new Error('no'));
    await turn();
    assert.deepEqual(policy.steps, ['reconcile a', 'changed a', 'reconcile a']);
  });

  test('does nothing while it is not the leader', async () => {
    reconciler.wake('a');
    reconciler.resync();
    await reconciler.connectDataCenter('A');
    assert.deepEqual([policy.steps, engine.calls], [[], []]);
    policy.onAdopt = async () => reconciler.pause();
    await reconciler.start();
    assert.deepEqual(policy.steps, ['stop', 'adopt known orphan'], 'nothing is reconciled');
    assert.deepEqual([engine.removed, engine.watchers.size, reconciler.isConnected('A')], [[], 0, false]);
    reconciler.wake('a');
    assert.equal(policy.steps.length, 2);
  });

  test('begins again when it gets the leadership back', async () => {
    await reconciler.start();
    reconciler.pause();
    await reconciler.start();
    assert.deepEqual(
      policy.steps.filter((step) => step.startsWith('adopt')),
      ['adopt known orphan', 'adopt known orphan'],
    );
    assert.equal(engine.watchers.size, 1);
  });
});
