import type { CloudEventBus } from '../domain/events.ts';
import type { Wakeup, WakeupBus } from '../store/wakeup-bus.ts';

const source = 'other-server';

/**
 * Passes events between the servers of one database: changes made here go out, those of other servers become
 * events here.
 */
export function connectWakeups(events: CloudEventBus, wakeups: WakeupBus): void {
  events.subscribe('pod.changed', ({ podId, source }) => {
    if (source !== 'other-server') wakeups.publish({ kind: 'pod', podId });
  });
  events.subscribe('keys.changed', ({ source }) => {
    if (source !== 'other-server') wakeups.publish({ kind: 'forget', what: 'keys' });
  });
  events.subscribe('endpoint.changed', ({ endpointId, source }) => {
    if (source !== 'other-server')
      wakeups.publish({ kind: 'forget', what: 'endpoints', ...(endpointId !== undefined && { endpointId }) });
  });
  events.subscribe('endpoint.removed', ({ endpointId, accountId, source }) => {
    if (source !== 'other-server')
      wakeups.publish({ kind: 'forget', what: 'endpoints', endpointId, removedFrom: accountId });
  });
  events.subscribe('worker.changed', ({ endpointId, workerId, source }) => {
    if (source !== 'other-server') wakeups.publish({ kind: 'worker', endpointId, workerId });
  });
  events.subscribe('volume.changed', ({ accountId, volumeId, source }) => {
    if (source !== 'other-server') wakeups.publish({ kind: 'volume', accountId, volumeId });
  });
  events.subscribe('quota.changed', ({ accountId, limit, maximum, source }) => {
    if (source !== 'other-server') wakeups.publish({ kind: 'quota-limit', accountId, limit, maximum });
  });
  events.subscribe('quota.warning', ({ accountId, limit, ratio, source }) => {
    if (source !== 'other-server') wakeups.publish({ kind: 'quota', accountId, limit, ratio });
  });
  events.subscribe('worker.refresh-requested', ({ endpointId, workerId, source }) => {
    if (source !== 'other-server') wakeups.publish({ kind: 'refresh', endpointId, workerId });
  });

  wakeups.subscribe((wakeup) => {
    switch (wakeup.kind) {
      case 'pod':
        return events.publish('pod.changed', { podId: wakeup.podId, source });
      case 'forget':
        return wakeup.what === 'keys'
          ? events.publish('keys.changed', { source })
          : publishEndpoint(events, wakeup);
      case 'demand': {
        const { kind: _, ...demand } = wakeup;
        return events.publish('endpoint.demand', demand);
      }
      case 'refresh':
        return events.publish('worker.refresh-requested', received(wakeup));
      case 'worker':
        return events.publish('worker.changed', received(wakeup));
      case 'volume':
        return events.publish('volume.changed', received(wakeup));
      case 'quota-limit':
        return events.publish('quota.changed', received(wakeup));
      case 'quota':
        return events.publish('quota.warning', received(wakeup));
      case 'missed':
        events.publish('keys.changed', { source });
        events.publish('endpoint.changed', { source });
        return events.publish('wakeups.missed', {});
      // The queue, the election and the rate limits subscribe to these themselves.
      case 'resigned':
      case 'rate':
      case 'queue':
      case 'job':
      case 'stop':
        return;
    }
  });
}

function received<W extends Wakeup>({ kind: _, ...event }: W): Omit<W, 'kind'> & { source: typeof source } {
  return { ...event, source };
}

function publishEndpoint(
  events: CloudEventBus,
  { endpointId, removedFrom }: { endpointId?: string; removedFrom?: string },
): void {
  events.publish('endpoint.changed', { ...(endpointId !== undefined && { endpointId }), source });
  if (endpointId !== undefined && removedFrom !== undefined)
    events.publish('endpoint.removed', { endpointId, accountId: removedFrom, source });
}
