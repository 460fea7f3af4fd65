/**
 * The shard of an endpoint, from 0. It never changes for a number of shards: servers of different versions
 * must agree on it.
 */
export function workerShardOf(endpointId: string, shards: number): number {
  // FNV-1a, with a last step that spreads ids which differ only at their end.
  let hash = 0x811c9dc5;
  for (let index = 0; index < endpointId.length; index += 1)
    hash = Math.imul(hash ^ endpointId.charCodeAt(index), 0x01000193);
  hash ^= hash >>> 15;
  return (hash >>> 0) % shards;
}
