import { named, nullable, object, text } from './json-schema.ts';

const over = (description: string) => nullable(text({ format: 'date-time', description }));

/** The start of a worker, in the worker itself and in the jobs that waited for it. */
export const startPhasesSchema = named(
  'StartPhases',
  object(
    {
      scheduledAt: over('Berth decided to start the worker'),
      imageReadyAt: over('Its image was on the machine, with its Python environment'),
      startedAt: over('Its process or container ran'),
      connectedAt: over('Its first heartbeat: its handler is loaded'),
      firstJobAt: over('It got its first job or request'),
    },
    {},
    { description: 'Berth only: when each phase of the start of a worker was over' },
  ),
);
