import type { InstanceEngine } from '../../engines/engine.ts';
import type { LogLine, LogPosition, LogQuery } from '../../domain/log-line.ts';
import type { ChangeNotifier } from '../../support/change-notifier.ts';
import { holdsHardware } from '../../domain/pods/pod-states.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';

/** How long a pod without news is left alone before it is looked at again: a change on another server may not be told. */
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
 * The log of a pod over all its instances, one after the other. Followed, it goes on as long as
 * the pod runs or is about to, and ends when the pod has ended and all is told. Where a start
 * failed before there was an instance, that is the log.
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
    // What is read after the end is all there is.
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
