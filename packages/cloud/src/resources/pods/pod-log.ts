import type { InstanceEngine } from '../../engines/engine.ts';
import type { LogLine, LogPosition, LogQuery } from '../../domain/log-line.ts';
import type { ChangeNotifier } from '../../support/change-notifier.ts';
import { holdsHardware } from '../../domain/pods/pod-states.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';

/**
 * The pod is read again after this time even without a notification: a change made on another server may not
 * be announced here.
 */
const RECHECK_MS = 5_000;

export interface PodLogOptions {
  pod: Pod;
  query: LogQuery;
  signal: AbortSignal;
  engine: InstanceEngine | undefined;
  changes: ChangeNotifier;
  find(): Promise<Pod | undefined>;
}

/**
 * The log of a pod over all its instances, one after the other. With `follow`, it continues while the pod
 * runs or is about to run, and ends when the pod has ended and every line was sent. If a start failed before
 * there was an instance, the failure is the log.
 */
export async function* podLog({
  pod,
  query,
  signal,
  engine,
  changes,
  find,
}: PodLogOptions): AsyncGenerator<LogLine> {
  let current: Pod | undefined = pod;
  let position: LogPosition | undefined = query.after;
  for (let complete = false; !complete && !signal.aborted; ) {
    const { changed, leave } = changes.waitForNext(pod.id, RECHECK_MS, signal);
    // After the pod has ended, one more read returns the rest of the log.
    complete = query.follow !== true || current === undefined || isFinished(current);
    for await (const line of engine?.logs(
      pod.id,
      { ...query, ...(position !== undefined && { after: position }) },
      signal,
    ) ?? []) {
      yield line;
      position = { seq: line.seq };
    }
    current = await find();
    if (!complete && current !== undefined && !isFinished(current)) await changed;
    leave();
  }
  if (
    position === undefined &&
    query.before === undefined &&
    current?.status === 'ERROR' &&
    current.statusDetail !== null &&
    query.source !== 'container'
  ) {
    yield { ts: current.statusChangedAt, seq: 1, source: 'system', line: current.statusDetail };
  }
}

function isFinished(pod: Pod): boolean {
  return !holdsHardware(pod) && pod.settled;
}
