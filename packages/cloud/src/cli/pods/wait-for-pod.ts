import type { ApiClient } from '../api-client.ts';
import type { CliContext } from '../cli-context.ts';
import { interruptiblePause } from '../interruptible-pause.ts';
import type { Options } from '../command-definition.ts';
import { CliError } from '../cli.errors.ts';
import { escapeControlCharacters } from '../output.ts';
import { reportChanges } from '../report-changes.ts';
import { parseCount } from '../serverless/deploy-options.ts';
import { podPath } from './pod-client.ts';
import type { PodView } from './pod-client.ts';

const POLL_INTERVAL_MS = 250;
const DEFAULT_TIMEOUT_S = 600;

/** Options of commands that start a pod. */
export const podStartOptions = {
  detach: { kind: 'switch', description: 'Do not wait until it runs.' },
  timeout: {
    kind: 'text',
    value: 'SECONDS',
    description: `How long to wait until it runs. Default: ${DEFAULT_TIMEOUT_S}.`,
  },
} as const satisfies Options;

export function parseStartTimeout(timeout: string | undefined): number {
  return (parseCount('timeout', timeout, 1) ?? DEFAULT_TIMEOUT_S) * 1000;
}

/**
 * Waits until a pod runs and reports its progress. A pod that has already ended successfully counts as having
 * run.
 */
export async function waitUntilPodRuns(
  client: ApiClient,
  pod: PodView,
  withinMs: number,
  say: (line: string) => void,
  call: Pick<CliContext, 'onInterrupt' | 'stderr'>,
): Promise<PodView> {
  const pause = interruptiblePause(call, `pod ${pod.id} goes on starting; remove it: berth pod rm ${pod.id}`);
  const until = performance.now() + withinMs;
  const report = reportChanges(say);
  for (let found = pod; ; found = await client.get<PodView>(podPath(pod))) {
    const { status, statusDetail } = found;
    if (status === 'RUNNING' || status === 'EXITED') return found;
    if (status === 'ERROR')
      throw new CliError(
        `pod ${escapeControlCharacters(pod.name)} (${pod.id}) did not start: ` +
          `${escapeControlCharacters(statusDetail ?? 'it does not say why')}; its log: berth pod logs ` +
          `${pod.id}`,
      );
    const line = statusDetail ?? status.toLowerCase();
    report(escapeControlCharacters(line));
    if (performance.now() >= until)
      throw new CliError(
        `pod ${escapeControlCharacters(pod.name)} (${pod.id}) does not run after ${withinMs / 1000} s: ` +
          `${escapeControlCharacters(line)}; it goes on by itself, and "berth pod ls" shows how far it is`,
      );
    await pause(POLL_INTERVAL_MS);
  }
}
