import type { CloudEventBus } from '../domain/events.ts';
import type { WakeupBus } from '../store/wakeup-bus.ts';

/** Passes events between the servers of one database: changes made here go out, those of other servers become events here. */
export function connectWakeups(events: CloudEventBus, wakeups: WakeupBus): void {
  events.subscribe('pod.changed', ({ podId, source }) => {
    if (source !== 'other-server') wakeups.publish({ kind: 'pod', podId });
  });
  events.subscribe('keys.changed', ({ source }) => {
    if (source !== 'other-server') wakeups.publish({ kind: 'forget', what: 'keys' });
  });
  events.subscribe('endpoint.changed', ({ source }) => {
    if (source !== 'other-server') wakeups.publish({ kind: 'forget', what: 'endpoints' });
  });
  events.subscribe('endpoint.removed', () => wakeups.publish({ kind: 'forget', what: 'endpoints' }));

  const source = 'other-server';
  wakeups.subscribe((wakeup) => {
    switch (wakeup.kind) {
      case 'pod':
        return events.publish('pod.changed', { podId: wakeup.podId, source });
      case 'forget':
        return wakeup.what === 'keys'
          ? events.publish('keys.changed', { source })
          : events.publish('endpoint.changed', { source });
      case 'missed':
        events.publish('keys.changed', { source });
        events.publish('endpoint.changed', { source });
        return events.publish('wakeups.missed', {});
      // The queue subscribes to these itself.
      case 'queue':
      case 'job':
      case 'stop':
        return;
    }
  });
}
