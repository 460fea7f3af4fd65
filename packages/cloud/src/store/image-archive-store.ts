/** A deployed folder, for all servers. */
export interface ImageArchiveKey {
  /** With its account, as in `local/<name>:<digest>`. */
  name: string;
  digest: string;
}

/** The deployed folders of all servers. */
export interface ImageArchiveStore {
  list(): Promise<ImageArchiveKey[]>;
  /** `parts` are base64. Does nothing if it is there already. */
  insert(
    key: ImageArchiveKey,
    archive: { metadata: string; createdAt: number; parts: readonly string[] },
  ): Promise<void>;
  /** Undefined if there is none. */
  find(key: ImageArchiveKey): Promise<{ metadata: string; parts: number } | undefined>;
  /** One part at a time: an archive may be large. */
  part(key: ImageArchiveKey, part: number): Promise<string | undefined>;
  remove(key: ImageArchiveKey): Promise<void>;
}
