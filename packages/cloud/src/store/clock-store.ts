/** What the servers of one installation know of each other's time, and what depends on it. */
export interface ClockStore {
  /**
   * What the clock of the database says, in milliseconds; undefined where that is the clock of this machine.
   */
  databaseTime(): Promise<DatabaseTime | undefined>;
  /** The leading server writes how far its time is from the clock of the database. The others follow it. */
  saveShared(time: SharedTime): Promise<void>;
  /**
   * Moves what is still due by a difference, so that time may be set by it, where nothing runs or waits: no
   * job, no worker, no pod. False where something does; nothing is changed then. `onMoved` sets the time, in
   * the same turn: whatever is written later is written with the new time.
   */
  moveDueTimes(by: number, onMoved: () => void): Promise<boolean>;
  /** Moves jobs that were created at a time, and were on their way into the database when it was set. */
  moveJobsOf(createdAt: { from: number; to: number }, by: number): Promise<void>;
}

export interface DatabaseTime {
  now: number;
  shared: SharedTime | undefined;
}

export interface SharedTime {
  /** The time of the servers minus the clock of the database. */
  offset: number;
  /** By the clock of the database. */
  writtenAt: number;
}
