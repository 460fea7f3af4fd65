import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startGraphqlFixture } from './graphql.fixture.ts';
import type { GraphqlFixture } from './graphql.fixture.ts';

const ASK = `{ myself { currentSpendPerHr clientLifetimeSpend spendDetails { localStoragePerHour
  networkStoragePerHour gpuComputePerHour }
  billing(input: {granularity: MONTHLY}) {
    gpuCloud { gpuTypeId amount } cpuCloud { cpuFlavorId amount timeBilledSeconds } serverless { endpointId
    amount } storage { time amount diskSpaceBilledGB } runpodEndpoint { amount }
    summary { time gpuCloudAmount cpuCloudAmount serverlessAmount storageAmount runpodEndpointAmount }
  } } }`;

describe('spend and billing in GraphQL', () => {
  let berth: GraphqlFixture;
  before(async () => {
    berth = await startGraphqlFixture();
  });
  after(() => berth.close());

  test('shows the ledger, with a volume that is billed while idle', async () => {
    await berth.call('createNetworkVolume', 'CreateNetworkVolumeInput', '{ id }', {
      name: 'v',
      size: 730,
      dataCenterId: 'LOCAL-1',
    });
    berth.clock.advance(10 * 3_600_000);
    const { data, errors } = await berth.ask(ASK);
    assert.deepEqual(errors, []);
    assert.deepEqual(data?.['myself'], {
      currentSpendPerHr: 0.07,
      clientLifetimeSpend: 0.7,
      spendDetails: { localStoragePerHour: 0, networkStoragePerHour: 0.07, gpuComputePerHour: 0 },
      billing: {
        gpuCloud: [],
        cpuCloud: [],
        serverless: [],
        runpodEndpoint: [],
        storage: [{ time: '2026-01-01T00:00:00.000Z', amount: 0.7, diskSpaceBilledGB: 730 }],
        summary: [
          {
            time: '2026-01-01T00:00:00.000Z',
            gpuCloudAmount: 0,
            cpuCloudAmount: 0,
            serverlessAmount: 0,
            storageAmount: 0.7,
            runpodEndpointAmount: 0,
          },
        ],
      },
    });
  });

  test('of one’s own account alone', async () => {
    const key = await berth.account('another');
    const { data } = await berth.ask(
      '{ myself { clientLifetimeSpend currentSpendPerHr billing { storage { amount } } } }',
      { key },
    );
    assert.deepEqual(data?.['myself'], {
      clientLifetimeSpend: 0,
      currentSpendPerHr: 0,
      billing: { storage: [] },
    });
  });
});
