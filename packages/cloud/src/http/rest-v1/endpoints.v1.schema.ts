import { COMPUTE_TYPES, SCALER_TYPES } from '../../domain/records.ts';
import { boolean, integer, list, map, named, object, stringEnum, text } from '../rest/json-schema.ts';
import { virtualGpu } from './pods.v1.schema.ts';
import { runpodctlEndpointFields } from './runpodctl-fields.v1.schema.ts';
import { template } from './templates.v1.routes.ts';

export const computeType = stringEnum(COMPUTE_TYPES, {
  default: 'GPU',
  description: 'Fields of the other kind are ignored',
});
export const scalerType = stringEnum(SCALER_TYPES, {
  description: 'Scale by how long requests wait, or by how many there are',
});

/** A worker is shown as the rented machine that it is. */
export const worker = named(
  'EndpointWorker',
  object(
    {
      id: text(),
      name: text({ description: 'Of its endpoint' }),
      endpointId: text(),
      aiApiId: text({ description: 'The same as endpointId' }),
      slsVersion: integer({ description: 'The version of the endpoint that it was made from' }),
      consumerUserId: text({ description: 'The account that owns it' }),
      desiredStatus: stringEnum(['RUNNING']),
      lastStatusChange: text({
        description: 'What it does: RUNNING, IDLE, INITIALIZING, THROTTLED or UNHEALTHY',
      }),
      lastStartedAt: text({ format: 'date-time' }),
      image: text(),
      machine: object({ dataCenterId: text() }),
      interruptible: boolean(),
      locked: boolean(),
    },
    {
      gpu: object({ id: text(), count: integer() }, { virtual: virtualGpu }, { description: 'Not on a CPU' }),
    },
    { description: 'One running copy of an endpoint' },
  ),
);

export const endpoint = named(
  'Endpoint',
  object(
    {
      id: text(),
      name: text(),
      userId: text({ description: 'The account that owns it' }),
      computeType,
      gpuTypeIds: list(text(), { description: 'The most wanted first; empty is any' }),
      gpuCount: integer({ description: 'GPUs of each worker' }),
      ...runpodctlEndpointFields,
      instanceIds: list(text(), { description: 'CPU machines such as cpu3g-4-16, the most wanted first' }),
      allowedCudaVersions: list(text()),
      dataCenterIds: list(text(), { description: 'Empty is anywhere' }),
      networkVolumeIds: list(text()),
      env: map(text()),
      executionTimeoutMs: integer({ description: '0 is no limit' }),
      idleTimeout: integer({ description: 'Seconds' }),
      scalerType,
      scalerValue: integer({ description: 'Seconds of waiting, or requests for each worker' }),
      workersMin: integer(),
      workersMax: integer(),
      flashboot: boolean(),
      version: integer({ description: 'Counts the changes that need new containers' }),
      createdAt: text({ format: 'date-time' }),
    },
    {
      virtualGpuTypeIds: list(text(), {
        description: 'Berth only: those of gpuTypeIds that are only names here; left out where none is',
      }),
      templateId: text(),
      minCudaVersion: text(),
      networkVolumeId: text(),
      template,
      workers: list(worker),
    },
    { description: 'A serverless address' },
  ),
);
