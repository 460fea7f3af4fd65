/** A server that takes part. Servers of one host share its machine, and one of them takes part for all. */
export interface ShardMember {
  server: string;
  hostId: string;
  /** Whether it holds the lease of the leader. */
  isLeader: boolean;
}

/** Who has what, as one server sees it. */
export interface ShardView {
  /** By shard; undefined where nobody holds it. */
  holders: readonly (string | undefined)[];
  members: readonly ShardMember[];
}

export interface ShardStep {
  /** Free ones that this server shall take. */
  take: number[];
  /** How many of its own it has too many. */
  excess: number;
}

/**
 * What one server does for a fair share. All decide alike from the same view: free shards go to those who have
 * fewest, and one who has two more than another one returns, one server at a time. `isOverdue` tells of a
 * free shard that whoever should have taken it did not.
 */
export function shareOut(
  { holders, members }: ShardView,
  server: string,
  isOverdue: (shard: number) => boolean,
): ShardStep {
  const taking = takingPart(members);
  const counts = new Map(taking.map((one) => [one, holders.filter((holder) => holder === one).length]));
  const own = holders.filter((holder) => holder === server).length;
  if (!counts.has(server)) return { take: [], excess: own };
  const least = (): string => taking.reduce((best, one) => (count(one) < count(best) ? one : best));
  const count = (one: string): number => counts.get(one) ?? 0;
  const take: number[] = [];
  for (const [shard, holder] of holders.entries()) {
    if (holder !== undefined) continue;
    const next = least();
    counts.set(next, count(next) + 1);
    if (next === server || isOverdue(shard)) take.push(shard);
  }
  const most = taking.reduce((best, one) => (count(one) > count(best) ? one : best));
  const isTooMany = most === server && count(server) - count(least()) >= 2;
  return { take, excess: isTooMany && take.length === 0 ? 1 : 0 };
}

/** One server of each host, in the order of their ids: the leader, which starts pods there, or the first. */
function takingPart(members: readonly ShardMember[]): string[] {
  const byHost = new Map<string, ShardMember>();
  for (const member of members.toSorted((one, other) => (one.server < other.server ? -1 : 1))) {
    const known = byHost.get(member.hostId);
    if (known === undefined || (member.isLeader && !known.isLeader)) byHost.set(member.hostId, member);
  }
  return [...byHost.values()].map(({ server }) => server);
}
