import type { FlashApp, FlashEnvironment, FlashBuild } from '../domain/flash-records.ts';
import type { Collection } from './collection.ts';

/** The environments and builds of an app go with it. */
export interface FlashStore {
  readonly apps: Collection<FlashApp>;
  readonly environments: Collection<FlashEnvironment>;
  readonly builds: Collection<FlashBuild>;
}
