import { POD_DEFAULTS } from '../../packages/cloud/src/domain/pods/pod-input.ts';
import { openStore } from '../../packages/cloud/src/store/open-store.ts';
import { systemClock } from '../../packages/cloud/src/support/clock.ts';
import { Sealer } from '../../packages/cloud/src/support/crypto.ts';
import { randomIds } from '../../packages/cloud/src/support/ids.ts';
import { loadMasterKey } from '../../packages/cloud/src/support/master-key.ts';
import type { BerthStorage } from './berth-process.ts';

const ACCOUNT = 'root';
const BATCH_SIZE = 500;

/** Puts stopped pods of the root account into the store, while no server runs. */
export async function fillPods({ data, database }: BerthStorage, count: number): Promise<void> {
  const store = await openStore({
    database,
    data,
    poolSize: 2,
    sealer: new Sealer(loadMasterKey(data, undefined, undefined)),
    onError: (error) => {
      throw error;
    },
  });
  try {
    for (let made = 0; made < count; made += BATCH_SIZE) {
      await Promise.all(
        Array.from({ length: Math.min(BATCH_SIZE, count - made) }, (_, index) => {
          const now = systemClock.now();
          const id = randomIds.resource();
          const record = {
            ...POD_DEFAULTS,
            id,
            accountId: ACCOUNT,
            name: `pod ${made + index}`,
            compute: 'CPU' as const,
            image: 'local/shell',
            args: 'sleep 1000',
            ports: ['8888/http', '22/tcp'],
            env: { NAME: `pod ${made + index}` },
            dataCenterId: 'LOCAL-1',
            cpuFlavorId: 'cpu3c',
            vcpuCount: 2,
            memoryInGb: 4,
            wanted: 'stopped' as const,
            status: 'EXITED' as const,
            settled: true,
            createdAt: now,
            updatedAt: now,
            statusChangedAt: now,
            startedAt: now,
            endedAt: now,
            exitCode: 0,
          };
          return store.pods.insert(ACCOUNT, {}, () => ({
            record,
            audit: {
              at: now,
              accountId: ACCOUNT,
              keyId: null,
              interface: 'system',
              requestId: 'bench',
              action: 'create',
              resource: 'pod',
              resourceId: id,
              changes: [],
            },
          }));
        }),
      );
    }
  } finally {
    await store.close();
  }
}
