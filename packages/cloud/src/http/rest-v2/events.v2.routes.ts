import { EVENT_SUBJECTS, subjectOf } from '../../domain/account-event.ts';
import type { AccountEvent, EventSubject } from '../../domain/account-event.ts';
import type { Caller } from '../../domain/caller.ts';
import type { AllServices } from '../../resources/resources.ts';
import type { FeedItem } from '../../telemetry/events/event-feed.ts';
import { isoTime } from '../../support/clock.ts';
import { boolean, commaList, object, stringEnum, text } from '../rest/json-schema.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import type { ServerSentEvent } from '../rest/server-sent-events.ts';

const DESCRIPTION = `Berth only. Server-sent events; \`data\` is a JSON object with \`type\`, \`at\` and \
the fields of that type. \
The first one is \`ready\` (or \`reset\`): state that is read after it and the events that follow leave no gap. \
With \`Last-Event-ID\` the stream goes on after that event; where that is not possible, the first event is \`reset\`, \
and everything has to be read again. Changes of jobs are sent together, a few times a second for each \
endpoint, and only to keys that may read the jobs of the endpoint. The stream ends when its key is \
revoked. docs/events.md lists the types.`;

export function eventOperations({ events }: Pick<AllServices, 'events'>): Operation[] {
  return [
    operation({
      id: 'streamEvents',
      method: 'GET',
      path: '/events',
      tag: 'Monitoring',
      summary: 'Follow what changes in the account',
      description: DESCRIPTION,
      access: 'read',
      eventStream: true,
      query: object(
        {},
        {
          types: commaList(stringEnum(EVENT_SUBJECTS), {
            description: 'Only events about these; default: all',
          }),
          endpointId: text({ minLength: 1, description: 'Only events about this endpoint' }),
          follow: boolean({
            default: true,
            description: 'Whether to continue with new events',
          }),
          podId: text({ minLength: 1, description: 'Only events about this pod' }),
        },
      ),
      status: 200,
      errorStatuses: [422],
      handle: async ({ caller, query, lastEventId, signal }) =>
        serverSentEvents(
          events.read({
            accountId: caller.accountId,
            after: lastEventId,
            follow: query.follow ?? true,
            accepts: (event) => matches(event, query) && mayRead(caller, event),
            signal,
          }),
        ) as never,
    }),
  ];
}

interface EventFilter {
  types?: EventSubject[];
  endpointId?: string;
  podId?: string;
}

function matches(event: AccountEvent, { types, endpointId, podId }: EventFilter): boolean {
  if (types !== undefined && !types.includes(subjectOf(event))) return false;
  if (endpointId === undefined && podId === undefined) return true;
  return (
    ('endpointId' in event && event.endpointId === endpointId) || ('podId' in event && event.podId === podId)
  );
}

function mayRead(caller: Caller, event: AccountEvent): boolean {
  return event.type !== 'job.changed' || caller.mayReadJobs?.(event.endpointId) !== false;
}

async function* serverSentEvents(items: AsyncIterable<FeedItem>): AsyncGenerator<ServerSentEvent> {
  for await (const item of items) {
    const { id } = item;
    if (item.kind === 'ready') yield { id, data: { type: 'ready', resumed: item.resumed } };
    else if (item.kind === 'reset') yield { id, data: { type: 'reset' } };
    else {
      const { type, ...fields } = item.stored.event;
      yield { id, data: { type, at: isoTime(item.stored.at), ...fields } };
    }
  }
}
