import type { OwnedRecord } from './records.ts';

/** Code that people deploy in one go, as the Flash client keeps it: environments that run builds. */
export interface FlashApp extends OwnedRecord {
  /** One of this name for each account. */
  name: string;
}

export interface FlashEnvironment extends OwnedRecord {
  appId: string;
  /** One of this name for each app. */
  name: string;
  activeBuildId: string | null;
  /** Endpoints that were made for it; some may be gone by now. */
  endpointIds: string[];
}

export interface FlashBuild extends OwnedRecord {
  appId: string;
  /** The uploaded file. */
  objectKey: string;
  /** What the client says is in it. */
  manifest: unknown;
}
