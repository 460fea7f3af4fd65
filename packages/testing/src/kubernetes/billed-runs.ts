// What is billed, beside what ran.
import assert from 'node:assert/strict';
import type { ApiClient } from '../api-client.ts';
import { type ContainerRun, ranFor, unknownFor } from './container-runs.ts';

/** A container's times are whole seconds, at its start and at its end. */
const ROUNDING_MS = 2_000;

export interface BilledRuns {
  /** Containers of workers that ran, and of pods. */
  workerRuns: number;
  podRuns: number;
  ranMs: number;
  billedMs: number;
}

/** Each container is billed from its start to its end, and nothing else is. */
export async function checkBilledRuns(
  client: ApiClient,
  { endpointId, pods, runs }: { endpointId: string; pods: readonly string[]; runs: readonly ContainerRun[] },
): Promise<BilledRuns> {
  let podsMs = 0;
  for (const id of pods) {
    const { body, text } = await client.call<{ timeBilledMs: number }[]>(
      'GET',
      `/v1/billing/pods?grouping=podId&podId=${id}&bucketSize=year`,
    );
    assert.ok(Array.isArray(body), text);
    const billedMs = sum(body.map(({ timeBilledMs }) => timeBilledMs));
    compare(
      `pod ${id}`,
      runs.filter((run) => run.id === id),
      billedMs,
    );
    podsMs += billedMs;
  }
  const workers = runs.filter(({ id }) => !pods.includes(id));
  const { body: records } = await client.call<{ podId: string; timeBilledMs: number }[]>(
    'GET',
    `/v1/billing/endpoints?grouping=podId&endpointId=${endpointId}&bucketSize=year`,
  );
  const workersMs = sum(records.map(({ timeBilledMs }) => timeBilledMs));
  const each = records.map(({ podId, timeBilledMs }) => {
    const ran = workers.filter(({ id }) => id === podId);
    return `${podId}: billed ${timeBilledMs} ms, ran ${JSON.stringify(ran)}`;
  });
  compare(`workers\n${each.join('\n')}\n`, workers, workersMs);
  return {
    workerRuns: workers.length,
    podRuns: runs.length - workers.length,
    ranMs: sum(runs.map(ranFor)),
    billedMs: podsMs + workersMs,
  };
}

function compare(what: string, runs: readonly ContainerRun[], billedMs: number): void {
  const ranMs = sum(runs.map(ranFor));
  const slackMs = runs.length * ROUNDING_MS;
  const unknownMs = sum(runs.map(unknownFor));
  assert.ok(
    billedMs >= ranMs - slackMs && billedMs <= ranMs + unknownMs + slackMs,
    `${what}: ran ${ranMs} to ${ranMs + unknownMs} ms in ${runs.length} containers, billed ${billedMs} ms`,
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
