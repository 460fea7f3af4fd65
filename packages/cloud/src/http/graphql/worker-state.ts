import type { AllResources, Resources } from '../../resources/resources.ts';
import type { WorkerStatus } from '../../resources/endpoints/workers.ts';
import type { Endpoint } from '../../store/records.ts';
import { isoTime } from '../../support/clock.ts';
import type { Part } from './part.ts';

const sdl = `
  enum EndpointStatisticGranularity { LIVE HOURLY DAILY WEEKLY MONTHLY }
  input WorkerStateInput { granularity: EndpointStatisticGranularity }
  "How many workers were in which state at a time"
  type WorkerState { time: DateTime initialized: Int ready: Int running: Int throttled: Int }
  extend type Endpoint {
    "The workers as they are now: no history of them is kept, so every granularity has this one entry"
    workerState(input: WorkerStateInput): [WorkerState]
  }
`;

export function workerStatePart({ workers }: Resources & Partial<Pick<AllResources, 'workers'>>): Part {
  return {
    sdl,
    fields: {
      Endpoint: {
        workerState: async ({ kept }: { kept: Endpoint }, _args: unknown, asking) => {
          const found = (await workers?.list(asking.caller, kept.id))?.workers ?? [];
          const count = (...statuses: WorkerStatus[]): number =>
            found.filter(({ status }) => statuses.includes(status)).length;
          return [
            {
              time: isoTime(Date.now()),
              initialized: count('INITIALIZING'),
              ready: count('IDLE'),
              running: count('RUNNING'),
              throttled: count('THROTTLED'),
            },
          ];
        },
      },
    },
  };
}
