import type { Migration } from './migration.ts';

/**
 * A job that goes from a client who waits for its end straight to a worker is in four tables
 * and indexes for a fraction of a millisecond. On SQLite it gets a note instead, one row that
 * holds what those would; its end writes it whole, and whoever looks before has it written out.
 */
export const inlineJobs: Migration = {
  name: 'notes of jobs that went straight to a worker',
  statements: [
    { sqlite: 'create table job_notes (seq integer primary key, note text not null)', postgres: 'select 1' },
  ],
};
