import type { CloudEventBus } from '../domain/events.ts';
import type { Clock } from '../support/clock.ts';
import type { Config } from '../support/config/config.ts';
import type { DiskSpace } from '../support/disk-space.ts';
import type { Ids } from '../support/ids.ts';
import type { Log } from '../support/log.ts';

/** What every part of the server is built with. */
export interface AppContext {
  config: Config;
  log: Log;
  clock: Clock;
  ids: Ids;
  events: CloudEventBus;
  /** The disk of the data directory. */
  disk: DiskSpace;
}
