import type { Migration } from './migration.ts';

/**
 * `job_history` has what jobs did in the last minutes, written with each change of a job; each writer (`lane`) has rows of its own.
 * From there it moves to `history`: a row for each minute and hour of a resource, with `data` as JSON from names to
 * [count, total, max]. What is sampled is written there at once.
 */
export const history: Migration = {
  name: 'history of endpoints and pods',
  statements: [
    `create table job_history (
      endpoint_id text not null,
      minute bigint not null,
      lane text not null,
      name text not null,
      count bigint not null,
      total bigint not null,
      primary key (endpoint_id, minute, lane, name)
    )`,
    'create index job_history_minute on job_history (minute)',
    `create table history (
      resource_id text not null,
      step text not null,
      start bigint not null,
      data text not null,
      primary key (resource_id, step, start)
    )`,
    'create index history_start on history (step, start)',
  ],
};
