/** A file that all servers have, by its name. */
export interface SharedFile {
  name: string;
  /** Another content of the same name is another version. */
  version: string;
  size: number;
  /** How many parts of it are in the database. 0: a bucket has the content. */
  parts: number;
  createdAt: number;
}

/** The files of all servers. The parts of a file are written before the file, and seen once it is there. */
export interface SharedFileStore {
  find(name: string): Promise<SharedFile | undefined>;
  /** Those whose names begin with the prefix. */
  list(prefix: string): Promise<SharedFile[]>;
  /** `content` is base64. */
  addPart(version: string, part: number, content: string, createdAt: number): Promise<void>;
  part(version: string, part: number): Promise<string | undefined>;
  /** The name stands for this version from now on. Answers the one that it replaces, whose parts are gone. */
  publish(file: SharedFile): Promise<SharedFile | undefined>;
  /** Deletes it with its parts, if it is still this version. */
  remove(file: SharedFile): Promise<void>;
  /** Deletes the parts of files that were not completed, if they are older than this. */
  removeIncomplete(before: number): Promise<void>;
}
