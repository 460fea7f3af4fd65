import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import type { InstanceAddress } from '../../engines/instance.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';
import { ReachableAddresses } from './reachable-addresses.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import { WorkerRegistry } from './worker-registry.ts';

const FORWARDED = { host: '127.0.0.1', port: 40001 };
const HERE = { host: '127.0.0.1', port: 50001 };

describe('addresses of workers at a server that does not lead', () => {
  let mirror: WorkerRegistry;
  let found: InstanceAddress | undefined;
  let asked: number;
  let addresses: ReachableAddresses;
  beforeEach(() => {
    mirror = new WorkerRegistry(undefined as never, undefined as never);
    found = undefined;
    asked = 0;
    addresses = new ReachableAddresses(mirror, async () => {
      asked += 1;
      return found;
    });
  });
  /** As if it was read from a report. */
  const read = (address: InstanceAddress | undefined): TrackedWorker => {
    const worker = mirror.getOrCreate('endpoint').add({ id: 'worker' } as Worker);
    worker.address = address;
    addresses.replace('endpoint', worker);
    return worker;
  };

  test('one that every machine reaches stays as it is', async () => {
    const worker = read({ host: '10.1.2.3', port: 80 });
    await addresses.find();
    assert.deepEqual([worker.address, asked], [{ host: '10.1.2.3', port: 80 }, 0]);
  });

  test('one of the leading server alone is found by the own engine, and asked for until it is', async () => {
    const worker = read(FORWARDED);
    await addresses.find();
    assert.deepEqual([worker.address, asked], [undefined, 1]);
    found = HERE;
    await addresses.find();
    assert.deepEqual(worker.address, HERE);
    assert.deepEqual(read(FORWARDED).address, HERE, 'another report of the same');
    await addresses.find();
    assert.equal(asked, 2);
  });

  test('another reported address is looked for anew, and that of a worker that is gone is forgotten', async () => {
    found = HERE;
    read(FORWARDED);
    await addresses.find();
    assert.equal(read({ ...FORWARDED, port: 40002 }).address, undefined);
    mirror.removeEndpoint('endpoint');
    await addresses.find();
    assert.equal(asked, 1);
    assert.equal(read({ ...FORWARDED, port: 40002 }).address, undefined);
  });
});
