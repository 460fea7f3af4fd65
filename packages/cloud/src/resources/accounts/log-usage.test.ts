import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import { SYSTEM_CALLER } from '../../domain/caller.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';
import { auditEntry } from '../resource-context.ts';
import { sampleEndpoint } from '../endpoints/endpoint.fixture.ts';
import { LogUsage } from './log-usage.ts';

test('the oldest logs of ended workers go first, and those of running ones stay', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-log-usage-'));
  const context = await createServiceContext();
  after(async () => {
    await context.close();
    rmSync(folder, { recursive: true });
  });
  const { store } = context;
  const { accountId } = await context.account('ann');
  const endpoint = { ...sampleEndpoint, accountId };
  await store.endpoints.insert(accountId, {}, () => ({
    record: endpoint,
    audit: auditEntry(context, SYSTEM_CALLER, 'create', 'endpoint', endpoint.id, [], accountId),
  }));
  const addWorker = async (id: string, endedAt: number | null): Promise<void> => {
    const worker: Worker = {
      id,
      accountId,
      endpointId: endpoint.id,
      version: 0,
      dataCenterId: 'LOCAL-1',
      image: 'python:3.12',
      gpuTypeId: null,
      gpuCount: 0,
      cpuFlavorId: 'cpu3c',
      vcpuCount: 2,
      containerDisk: 20,
      templateId: null,
      state: endedAt === null ? 'ready' : 'ended',
      handle: null,
      imageReadyAt: null,
      startedAt: 1,
      readyAt: 1,
      firstJobAt: null,
      endedAt,
      exitCode: null,
      reason: null,
      createdAt: 1,
    };
    await store.workers.saveWorker({ ...worker, startedAt: null });
    await store.workers.saveWorker(worker);
    mkdirSync(join(folder, id));
    writeFileSync(join(folder, id, '1.lines'), 'x'.repeat(1_000));
  };
  await addWorker('running', null);
  await addWorker('newer', 300);
  await addWorker('older', 200);
  await addWorker('oldest', 100);
  const deleted: string[] = [];
  const usage = new LogUsage({
    store,
    folders: [folder],
    deleteLog: async (_dataCenterId, id) => {
      deleted.push(id);
      rmSync(join(folder, id), { recursive: true });
    },
  });
  assert.equal(await usage.bytesOf(accountId), 4_000);
  await usage.trim(accountId, 4_000);
  await usage.expire(accountId, 100);
  assert.deepEqual(deleted, []);
  await usage.expire(accountId, 101);
  assert.deepEqual(deleted, ['oldest']);
  await usage.trim(accountId, 2_500);
  assert.deepEqual(deleted, ['oldest', 'older']);
  await usage.trim(accountId, 0);
  assert.deepEqual(deleted, ['oldest', 'older', 'newer']);
  assert.equal(await usage.bytesOf(accountId), 1_000);
});
