import type { Migration } from './migration.ts';

/**
 * Old webhooks are forgotten now and then: without an index that was a look at all of them, through all of
 * their bodies.
 */
export const endedDeliveries: Migration = {
  name: 'an index of webhooks that came to their end',
  statements: [
    'create index webhook_deliveries_ended on webhook_deliveries (updated_at) where next_at is null',
  ],
};
