/** Where scheduled backups are kept. */
export interface BackupTarget {
  /** The names of the backups that are there, oldest first. */
  list(): Promise<string[]>;
  /** Keeps a file under this name. Whoever lists the target meanwhile does not see it. */
  add(name: string, file: string): Promise<void>;
  remove(name: string): Promise<void>;
}

const NAME = /^berth-(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-(\d\d)Z\.tar$/;

/** `berth-2026-11-17T19-30-00Z.tar`. Names sort by time. */
export function backupName(at: number): string {
  return `berth-${new Date(at).toISOString().slice(0, 19).replaceAll(':', '-')}Z.tar`;
}

/** When a backup of this name was made; undefined for any other file, which is left alone. */
export function backupTime(name: string): number | undefined {
  const found = NAME.exec(name);
  return found === null ? undefined : Date.parse(`${found[1]}:${found[2]}:${found[3]}Z`);
}
