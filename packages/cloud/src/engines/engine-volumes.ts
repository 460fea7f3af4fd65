/** A volume of an engine that keeps volumes by itself. */
export interface EngineVolume {
  id: string;
  accountId: string;
  sizeInGb: number;
  /** The tier, such as STANDARD. */
  type?: string;
}

/** Where the files of a volume can be read and written, with the token that this needs. */
export interface VolumeServer {
  host: string;
  port: number;
  token: string;
}

/**
 * The volumes of an engine that keeps them by itself, where Berth servers do not see them as folders. Every
 * action is idempotent by the volume's id.
 */
export interface EngineVolumes {
  create(volume: EngineVolume): Promise<void>;
  /** Makes it as large as given; one that is not there yet is left to `create`. Rejects if that cannot be. */
  grow(volume: EngineVolume): Promise<void>;
  /** Deletes it with its data, as soon as no instance uses it. What fails is tried again. */
  remove(id: string): Promise<void>;
  /** The ids of the volumes that are there. */
  list(): Promise<string[]>;
  /** Where a server for its files answers, started if none runs. */
  connect(volume: EngineVolume): Promise<VolumeServer>;
  /** The same, if one runs. */
  findServer(id: string): Promise<VolumeServer | undefined>;
  /** Nothing answers there any more. */
  forgetServer(id: string): void;
}
