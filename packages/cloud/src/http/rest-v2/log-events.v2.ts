import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import type { ServerSentEvent } from '../rest/server-sent-events.ts';
import { boolean, integer, object, stringEnum, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { dateTime } from './common.v2.schema.ts';
import { LOG_TAIL, DEFAULT_LOG_TAIL } from '../../domain/limits.ts';

export const logQuery = object(
  {},
  {
    source: stringEnum(['container', 'system'], {
      description: 'Only what the container wrote, or only messages of Berth about it',
    }),
    tail: integer({
      ...LOG_TAIL,
      default: DEFAULT_LOG_TAIL,
      description: 'How many of the last lines to begin with',
    }),
    since: dateTime('Only lines after this time'),
    before: text({
      pattern: '^(?:[^/]*/)?\\d{1,15}$',
      description:
        'Berth only: the id of an event. Only lines before it, the last `tail` of them or those after ' +
        '`since`; the stream then ends. So older lines are read page by page',
    }),
    follow: boolean({
      default: true,
      description: 'Berth only: whether to continue with new lines as they are written',
    }),
  },
);

/**
 * Where to begin: after the last line that a reader had, where it says so in a way that can be read, else
 * after a time, else with the last lines.
 */
export function readLogQuery(
  { source, tail = DEFAULT_LOG_TAIL, since, before, follow = true }: Static<typeof logQuery>,
  lastEventId: string | undefined,
): LogQuery {
  const end = /\d+$/.exec(before ?? '')?.[0];
  const read = {
    follow: follow && end === undefined,
    ...(source !== undefined && { source }),
    ...(end !== undefined && { before: { seq: Number(end) } }),
  };
  const seq = /\/(\d{1,15})$/.exec(lastEventId ?? '')?.[1];
  if (seq !== undefined) return { ...read, after: { seq: Number(seq) } };
  const time = [lastEventId, since]
    .map((text) => Date.parse(text ?? ''))
    .find((parsed) => !Number.isNaN(parsed));
  return time === undefined ? { ...read, tail } : { ...read, after: { ts: time } };
}

export async function* logEvents(lines: AsyncIterable<LogLine>): AsyncGenerator<ServerSentEvent> {
  for await (const { ts, seq, source, line } of lines) {
    const at = new Date(ts).toISOString();
    yield { id: `${at}/${String(seq).padStart(12, '0')}`, data: { ts: at, source, line } };
  }
}
