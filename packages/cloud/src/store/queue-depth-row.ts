import type { QueueDepth } from './job-store.ts';

/** The depth of one queue, as both databases answer it. */
export type QueueDepthRow = {
  endpoint_id: string;
  queued: number;
  running: number;
  oldest: number | null;
};

/** PostgreSQL answers large numbers as text. */
export function toQueueDepth({ endpoint_id, queued, running, oldest }: QueueDepthRow): QueueDepth {
  return {
    endpointId: endpoint_id,
    queued: Number(queued),
    running: Number(running),
    oldestQueuedAt: oldest === null ? null : Number(oldest),
  };
}
