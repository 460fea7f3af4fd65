import type {
  Cancel,
  Deadline,
  InjectedFault,
  HistoryEvent,
  Execution,
  Observation,
  Purge,
  Retry,
  StreamedChunk,
  StreamRead,
  Submission,
  WorkerResult,
} from './job-history.ts';

/** What must never happen. */
export type ViolationKind =
  /** A job that was accepted, or that ran, and has no end: nobody finds it, or it hangs. */
  | 'lost'
  /** More different ends than lives; a retry by hand gives another life. */
  | 'two results'
  /** An end was seen, and later something else. */
  | 'changed after the end'
  /** A state that nothing in the history explains. */
  | 'unexpected'
  /** A worker was given an input that no client submitted. */
  | 'executed without submission'
  /** One submission, several jobs. */
  | 'submitted twice'
  /**
   * A stream with a chunk twice, out of order, of another attempt than the result's, or without one that was
   * kept.
   */
  | 'wrong stream';

export interface Violation {
  kind: ViolationKind;
  id: string;
  reason: string;
}

/** What one job's history holds. */
interface JobHistory {
  id: string;
  submissions: Submission[];
  executions: Execution[];
  results: WorkerResult[];
  chunks: StreamedChunk[];
  cancels: Cancel[];
  retries: Retry[];
  deadlines: Deadline[];
  observations: Observation[];
  streams: StreamRead[];
}

/** What an end that no worker posted says, where the worker was lost. */
const WORKER_LOST_ERROR =
  /^"the worker (that ran the job (was lost|went away)|has neither the job nor a result of it|ended the job without a result)/;

/** Reads a history and says what is wrong with it. It knows the promises and nothing of how they are kept. */
export function findViolations(history: readonly HistoryEvent[]): Violation[] {
  const purges = history.filter((event) => event.kind === 'purge');
  const disturbances = history.filter((event) => event.kind === 'disturbance');
  const stories = storiesOf(history);
  return [
    ...[...stories.values()].flatMap((story) => [
      ...lost(story, purges),
      ...twoResults(story),
      ...changedAfterEnd(story),
      ...unexpected(story, purges, disturbances),
      ...wrongStream(story),
    ]),
    ...withoutSubmission(history),
    ...submittedTwice(history, purges),
  ];
}

function storiesOf(history: readonly HistoryEvent[]): Map<string, JobHistory> {
  const stories = new Map<string, JobHistory>();
  const of = (id: string): JobHistory => {
    const known = stories.get(id) ?? {
      id,
      submissions: [],
      executions: [],
      results: [],
      chunks: [],
      cancels: [],
      retries: [],
      deadlines: [],
      observations: [],
      streams: [],
    };
    stories.set(id, known);
    return known;
  };
  for (const event of history) {
    switch (event.kind) {
      case 'submission':
        if (event.id !== null) of(event.id).submissions.push(event);
        break;
      case 'execution':
        of(event.id).executions.push(event);
        break;
      case 'result':
        of(event.id).results.push(event);
        break;
      case 'chunk':
        of(event.id).chunks.push(event);
        break;
      case 'cancel':
        of(event.id).cancels.push(event);
        break;
      case 'retry':
        if (event.outcome !== 'refused') of(event.id).retries.push(event);
        break;
      case 'deadline':
        of(event.id).deadlines.push(event);
        break;
      case 'observation':
        of(event.id).observations.push(event);
        break;
      case 'stream':
        of(event.id).streams.push(event);
        break;
      case 'purge':
      case 'disturbance':
        break;
    }
  }
  for (const { observations } of stories.values()) observations.sort((a, b) => a.to - b.to);
  return stories;
}

function lost(story: JobHistory, purges: readonly Purge[]): Violation[] {
  const last = story.observations.at(-1);
  if (last === undefined)
    return [fault('lost', story, 'it was accepted or ran, and nobody has looked at it since')];
  if (last.status === 'IN_QUEUE' || last.status === 'IN_PROGRESS')
    return [fault('lost', story, `it is still ${last.status} at the end`)];
  if (last.status === 'GONE' && !mayBeGone(story, last, purges))
    return [fault('lost', story, 'it is gone, and neither a purge nor its time explains that')];
  return [];
}

/**
 * A purge takes what waits. So it explains nothing where the job had ended before, and no retry had sent it
 * back.
 */
function mayBeGone(story: JobHistory, gone: Observation, purges: readonly Purge[]): boolean {
  if (story.deadlines.some(({ status, at }) => status === 'GONE' && at <= gone.to)) return true;
  return purges.some((purge) => {
    if (purge.from > gone.to) return false;
    const ended = story.observations.find((seen) => hasEnded(seen) && seen.to <= purge.from);
    return ended === undefined || retriedBetween(story, ended, gone);
  });
}

function twoResults(story: JobHistory): Violation[] {
  const lives = 1 + story.retries.length;
  const ends = new Set(story.observations.filter((seen) => hasEnded(seen) && !seen.brief).map(outcomeOf));
  const statuses = new Set(story.observations.filter(hasEnded).map(({ status }) => status));
  if (ends.size <= lives && statuses.size <= lives) return [];
  return [
    fault(
      'two results',
      story,
      `${lives} ${lives === 1 ? 'life' : 'lives'}, but ` +
        `${ends.size > lives ? [...ends].join(' and ') : [...statuses].join(' and ')}`,
    ),
  ];
}

function changedAfterEnd(story: JobHistory): Violation[] {
  const { observations } = story;
  for (const [index, end] of observations.entries()) {
    if (!hasEnded(end)) continue;
    for (const later of observations.slice(index + 1)) {
      if (later.from < end.to || isSame(end, later)) continue;
      if (
        later.status === 'GONE' &&
        story.deadlines.some(({ status, at }) => status === 'GONE' && at <= later.to)
      )
        continue;
      const canBeRetried = end.status === 'FAILED' || end.status === 'TIMED_OUT';
      if (canBeRetried && retriedBetween(story, end, later)) continue;
      return [
        fault('changed after the end', story, `it was ${outcomeOf(end)} and became ${outcomeOf(later)}`),
      ];
    }
  }
  return [];
}

function unexpected(
  story: JobHistory,
  purges: readonly Purge[],
  disturbances: readonly InjectedFault[],
): Violation[] {
  for (const seen of story.observations) {
    const because = whyUnexpected(story, seen, purges, disturbances);
    if (because !== undefined) return [fault('unexpected', story, `${outcomeOf(seen)}: ${because}`)];
  }
  return [];
}

function whyUnexpected(
  story: JobHistory,
  seen: Observation,
  purges: readonly Purge[],
  disturbances: readonly InjectedFault[],
): string | undefined {
  switch (seen.status) {
    case 'IN_QUEUE':
    case 'IN_PROGRESS':
      return undefined;
    case 'GONE':
      return mayBeGone(story, seen, purges) ? undefined : 'neither a purge nor its time explains that';
    case 'CANCELLED':
      return story.cancels.some(({ from }) => from <= seen.to) ? undefined : 'nobody cancelled it';
    case 'TIMED_OUT':
      return story.deadlines.some(({ at }) => at <= seen.to) ? undefined : 'its time was not over';
    case 'COMPLETED':
      if (seen.brief)
        return story.results.some(({ error, at }) => error === null && at <= seen.to)
          ? undefined
          : 'no worker had posted a result';
      return postedBy(story, seen) === undefined ? 'no attempt of this job gave that output' : undefined;
    case 'FAILED': {
      if (postedBy(story, seen) !== undefined) return undefined;
      if (seen.brief && story.results.some(({ error, at }) => error !== null && at <= seen.to))
        return undefined;
      const disturbed = disturbances.some(({ at }) => at <= seen.to);
      if (disturbed && (seen.brief || WORKER_LOST_ERROR.test(seen.error ?? ''))) return undefined;
      return disturbed
        ? 'no attempt of this job gave that error'
        : 'no attempt failed, and no worker was lost';
    }
  }
}

/** The result that a final state shows: of an attempt of this very job, and posted before it was seen. */
function postedBy({ results, executions }: JobHistory, seen: Observation): WorkerResult | undefined {
  return results.find(
    ({ output, error, marker, at }) =>
      output === seen.output &&
      error === seen.error &&
      at <= seen.to &&
      executions.some((execution) => execution.marker === marker),
  );
}

function wrongStream(story: JobHistory): Violation[] {
  const end = story.observations.findLast((seen) => hasEnded(seen) && !seen.brief);
  const marker = end === undefined ? undefined : postedBy(story, end)?.marker;
  for (const { chunks } of story.streams) {
    const received = chunks.map((chunk) => `${chunk.marker}#${chunk.number}`).join(' ');
    if (chunks.some((chunk, index) => index > 0 && chunk.number <= (chunks[index - 1]?.number ?? -1)))
      return [fault('wrong stream', story, `out of order or twice: ${received}`)];
    if (marker === undefined) continue;
    if (chunks.some((chunk) => chunk.marker !== marker))
      return [fault('wrong stream', story, `the result is of ${marker}, the stream is ${received}`)];
    const missing = story.chunks.find(
      (chunk) =>
        chunk.kept && chunk.marker === marker && !chunks.some(({ number }) => number === chunk.number),
    );
    if (missing !== undefined)
      return [fault('wrong stream', story, `chunk ${missing.number} was kept and is missing: ${received}`)];
  }
  return [];
}

function withoutSubmission(history: readonly HistoryEvent[]): Violation[] {
  const first = new Map<string, number>();
  const valueOf = new Map<string, string>();
  for (const event of history) {
    if (event.kind !== 'submission') continue;
    first.set(event.value, Math.min(first.get(event.value) ?? Infinity, event.from));
    if (event.id !== null) valueOf.set(event.id, event.value);
  }
  const faults: Violation[] = [];
  for (const event of history) {
    if (event.kind !== 'execution') continue;
    const submitted = first.get(event.value);
    const own = valueOf.get(event.id);
    if (submitted === undefined || submitted > event.at)
      faults.push({
        kind: 'executed without submission',
        id: event.id,
        reason: `no client submitted ${event.value}`,
      });
    else if (own !== undefined && own !== event.value)
      faults.push({
        kind: 'executed without submission',
        id: event.id,
        reason: `it was submitted as ${own} and ran as ${event.value}`,
      });
  }
  return faults;
}

/**
 * A value is submitted once, or again under the same key: one job. A purge or its own end frees a key, so
 * then nothing is said.
 */
function submittedTwice(history: readonly HistoryEvent[], purges: readonly Purge[]): Violation[] {
  if (purges.length > 0) return [];
  const ids = new Map<string, Set<string>>();
  const expiring = new Set<string>();
  for (const event of history) {
    if (event.kind === 'deadline' && event.status === 'GONE') expiring.add(event.id);
    if (event.kind !== 'submission' && event.kind !== 'execution' && event.kind !== 'observation') continue;
    if (event.id === null || event.value === null) continue;
    ids.set(event.value, (ids.get(event.value) ?? new Set()).add(event.id));
  }
  return [...ids]
    .filter(([, jobs]) => jobs.size > 1 && ![...jobs].some((id) => expiring.has(id)))
    .map(([value, jobs]) => ({
      kind: 'submitted twice',
      id: [...jobs].join(' and '),
      reason: `${value} was submitted once`,
    }));
}

/** A retry that may have taken effect after one observation and before the other. */
function retriedBetween({ retries }: JobHistory, before: Observation, after: Observation): boolean {
  return retries.some(
    ({ from, to, outcome }) => from <= after.to && (outcome === 'unknown' || to >= before.from),
  );
}

function hasEnded({ status }: Observation): boolean {
  return status === 'COMPLETED' || status === 'FAILED' || status === 'CANCELLED' || status === 'TIMED_OUT';
}

function isSame(a: Observation, b: Observation): boolean {
  return a.status === b.status && (a.brief || b.brief || (a.output === b.output && a.error === b.error));
}

function outcomeOf({ status, output, error }: Observation): string {
  return [status, output, error].filter((part) => part !== null).join(' ');
}

function fault(kind: ViolationKind, { id }: JobHistory, because: string): Violation {
  return { kind, id, reason: because };
}
