import type { LogLine } from '../../domain/log-line.ts';
import type { AllServices, ResourceServices } from '../../resources/resources.ts';
import { isoTime } from '../../support/clock.ts';
import { notFound } from '../../support/errors.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { list, named, object, text } from '../rest/json-schema.ts';

/**
 * What flash shows of a worker: it asks for all of it again while a call runs, and drops what it has seen.
 */
const TAIL_LINES = 200;

const workerLog = named(
  'WorkerLog',
  object(
    {
      container: list(text(), { description: 'What it wrote' }),
      system: list(text(), { description: 'Messages of Berth about it' }),
    },
    {},
    { description: 'Lines that begin with their time' },
  ),
);

/**
 * flash reads the log of its worker at a host of its own, `RUNPOD_HAPI_URL`. Here that is this server, so
 * this is one more address of v1.
 */
export function workerLogOperations({
  workers,
}: ResourceServices & Partial<Pick<AllServices, 'workers'>>): Operation[] {
  return [
    operation({
      id: 'getWorkerLog',
      method: 'GET',
      path: '/pod/{workerId}/logs',
      tag: 'Endpoints',
      summary: 'The last lines of a worker',
      access: 'read',
      description: 'Of flash alone; REST v2 has the whole log, and follows it.',
      params: object({ workerId: text({ minLength: 1 }) }),
      status: 200,
      response: workerLog,
      errorStatuses: [404],
      handle: async ({ caller, params, signal }) => {
        if (workers === undefined) throw notFound('worker', params.workerId);
        const lines = await Array.fromAsync(
          await workers.logsById(caller, params.workerId, { tail: TAIL_LINES, follow: false }, signal),
        );
        const of = (wanted: LogLine['source']): string[] =>
          lines.filter(({ source }) => source === wanted).map(({ ts, line }) => `${isoTime(ts)} ${line}`);
        return { container: of('container'), system: of('system') };
      },
    }),
  ];
}
