import type { AllServices, ResourceServices } from '../../resources/resources.ts';
import type { WorkerStatus } from '../../resources/endpoints/endpoint-workers.ts';
import type { Endpoint } from '../../domain/records.ts';
import { isoTime } from '../../support/clock.ts';
import type { GraphqlModule } from './graphql-module.ts';

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

export function workerStateModule({
  workers,
}: ResourceServices & Partial<Pick<AllServices, 'workers'>>): GraphqlModule {
  return {
    sdl,
    fieldResolvers: {
      Endpoint: {
        workerState: async ({ record }: { record: Endpoint }, _args: unknown, context) => {
          const found = (await workers?.list(context.caller, record.id))?.workers ?? [];
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
