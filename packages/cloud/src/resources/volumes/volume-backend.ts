import type { MultipartUploads } from './multipart-uploads.ts';
import type { VolumeObjects } from './volume-objects.ts';
import type { VolumeUsage } from './volume-usage.ts';

export type ObjectStore = Pick<VolumeObjects, 'list' | 'head' | 'open' | 'put' | 'remove'>;
export type UploadStore = Pick<
  MultipartUploads,
  'create' | 'find' | 'list' | 'putPart' | 'listParts' | 'complete' | 'abort'
>;

/** The files of one volume: in folders that this server sees, or behind a volume server. */
export interface VolumeBackend {
  objects: ObjectStore;
  uploads: UploadStore;
  /** Deletes a folder with all that is in it; false where there is none. */
  removeFolder(names: readonly string[]): Promise<boolean>;
  usage(): Promise<VolumeUsage>;
}
