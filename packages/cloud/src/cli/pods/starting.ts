import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '../client.ts';
import type { Options } from '../command.ts';
import { Failure } from '../failure.ts';
import { visible } from '../output.ts';
import { readCount } from '../serverless/order.ts';
import { podPath } from './pods.ts';
import type { PodView } from './pods.ts';

const LOOK_EVERY_MS = 250;
const DEFAULT_TIMEOUT_S = 600;

/** For commands that start a pod. */
export const startingOptions = {
  detach: { kind: 'switch', description: 'Do not wait until it runs.' },
  timeout: {
    kind: 'text',
    value: 'SECONDS',
    description: `How long to wait until it runs. Default: ${DEFAULT_TIMEOUT_S}.`,
  },
} as const satisfies Options;

export function readTimeout(timeout: string | undefined): number {
  return (readCount('timeout', timeout, 1) ?? DEFAULT_TIMEOUT_S) * 1000;
}

/** Waits until a pod runs, and says what it does meanwhile. One that ends well before anybody looked has run, too. */
export async function waitUntilRunning(
  client: Client,
  pod: PodView,
  withinMs: number,
  say: (line: string) => void,
): Promise<PodView> {
  const until = performance.now() + withinMs;
  let told = '';
  for (let found = pod; ; found = await client.get<PodView>(podPath(pod))) {
    const { status, statusDetail } = found;
    if (status === 'RUNNING' || status === 'EXITED') return found;
    if (status === 'ERROR')
      throw new Failure(
        `pod ${visible(pod.name)} (${pod.id}) did not start: ${visible(statusDetail ?? 'it does not say why')}; its log: berth pod logs ${pod.id}`,
      );
    const line = statusDetail ?? status.toLowerCase();
    if (line !== told) say(visible(line));
    told = line;
    if (performance.now() >= until)
      throw new Failure(
        `pod ${visible(pod.name)} (${pod.id}) does not run after ${withinMs / 1000} s: ${visible(line)}; it goes on by itself, and "berth pod ls" shows how far it is`,
      );
    await pause(LOOK_EVERY_MS);
  }
}
