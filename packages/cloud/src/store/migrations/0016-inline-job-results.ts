import type { Migration } from './migration.ts';

/**
 * The end of a job that has a note is written into the note as well: one page of the database
 * instead of five. A few jobs that have ended are written out together.
 */
export const inlineJobResults: Migration = {
  name: 'notes of jobs that have ended',
  statements: [
    {
      sqlite:
        'create table job_notes_with_ends (seq integer primary key, held text not null, request text not null, ended text)',
      postgres: 'select 1',
    },
    {
      sqlite:
        "insert into job_notes_with_ends (seq, held, request) select seq, json_extract(note, '$.held'), json_extract(note, '$.request') from job_notes",
      postgres: 'select 1',
    },
    { sqlite: 'drop table job_notes', postgres: 'select 1' },
    { sqlite: 'alter table job_notes_with_ends rename to job_notes', postgres: 'select 1' },
  ],
};
