import type { Migration } from './migration.ts';

/**
 * `limits` is JSON, name to number. `status` is active, disabled or deleting. `spend_warned` is the last
 * warning: month and level.
 */
export const accountLimits: Migration = {
  name: 'limits and status of accounts',
  statements: [
    `alter table accounts add column limits text not null default '{}'`,
    `alter table accounts add column status text not null default 'active'`,
    'alter table accounts add column spend_warned text',
  ],
};
