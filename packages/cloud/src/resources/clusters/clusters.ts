import type { Cluster } from '../../store/clusters.ts';
import type { Pod, PodStatus } from '../../store/pods.ts';
import { notFound, rule } from '../../support/errors.ts';
import type { Caller } from '../caller.ts';
import { auditOf, changesBetween } from '../context.ts';
import type { Context } from '../context.ts';
import { placeOrInterrupt } from '../pods/interruption.ts';
import { leftCluster } from '../pods/lifecycle.ts';
import { placeTogether } from '../pods/placement.ts';
import type { PodSite } from '../pods/placement.ts';
import type { Pods } from '../pods/pods.ts';
import { MAX_NAME_LENGTH, nameFindings } from '../templates/rules.ts';
import { freeSubnet, LOOPBACK_RANGE, meetingPort, memberAddress } from './network.ts';
import { POD_COUNT } from './order.ts';
import type { NewCluster } from './order.ts';
import { roleOf } from './roles.ts';

const KIND = 'cluster';

export interface ClusterParts {
  pods: Pods;
  /** Where the networks of clusters are taken from, for engines that give instances one. */
  range: string;
}

/** A cluster with how it is now. */
export interface ClusterView extends Cluster {
  /** By rank. */
  members: Pod[];
}

/** Several pods of one shape in one place, with one network. They are made together and go together. */
export class Clusters {
  readonly #context: Context;
  readonly #parts: ClusterParts;

  constructor(context: Context, parts: ClusterParts) {
    this.#context = context;
    this.#parts = parts;
  }

  /** All of its pods get their place at once, or there is no cluster. */
  async create(caller: Caller, { name, type, podCount, pod: order }: NewCluster): Promise<ClusterView> {
    const { store, clock, ids } = this.#context;
    const { pods, range } = this.#parts;
    checkName(name);
    if (!Number.isInteger(podCount) || podCount < POD_COUNT.minimum || podCount > POD_COUNT.maximum)
      throw rule(
        `podCount must be a whole number from ${POD_COUNT.minimum} to ${POD_COUNT.maximum}, got ${podCount}`,
      );
    const prepared = await pods.prepare(caller, order);
    const inUse = await Promise.all(
      prepared.sites.map(async (site) => [site.dataCenterId, (await site.subnetsInUse?.()) ?? []] as const),
    );
    const id = ids.resource();
    const now = clock.now();
    const made = await store.clusters.insert(caller.accountId, prepared.footing, (footing) => {
      const { volume } = prepared.check(footing);
      const { place, interrupted } = placeOrInterrupt(
        (sites, held) => placeTogether(prepared.hardware, podCount, volume, sites, held),
        prepared.sites.filter(isJoining),
        footing,
        now,
      );
      const shared =
        prepared.sites.find(({ dataCenterId }) => dataCenterId === place.dataCenterId)?.network ===
        'loopback';
      const taken = inUse.flatMap(([dataCenterId, subnets]) =>
        dataCenterId === place.dataCenterId ? subnets : [],
      );
      const subnet = freeSubnet(id, shared ? LOOPBACK_RANGE : range, [...footing.subnets, ...taken]);
      const templateId = order.template?.id ?? null;
      const record: Cluster = {
        id,
        accountId: caller.accountId,
        name,
        type,
        gpuTypeId: place.gpuTypeId ?? '',
        gpuCountPerPod: place.gpuCount,
        podCount,
        templateId,
        dataCenterId: place.dataCenterId,
        subnet,
        createdAt: now,
        updatedAt: now,
      };
      const joint = {
        size: podCount,
        primaryAddress: memberAddress(subnet, 0),
        primaryPort: meetingPort(subnet, shared),
        subnet,
      };
      const newcomers = Array.from(
        { length: podCount },
        (_, rank): Pod => ({
          ...prepared.make(ids.resource(), place, volume),
          name: memberName(name, rank),
          templateId,
          clusterId: id,
          membership: { ...joint, rank, role: roleOf(type, rank), address: memberAddress(subnet, rank) },
        }),
      );
      return {
        cluster: record,
        members: newcomers,
        audit: auditOf(this.#context, caller, 'create', KIND, id),
        interrupted: pods.interruptions(interrupted),
      };
    });
    const { cluster, members } = made;
    for (const pod of [...(made.interrupted ?? []).map(({ record }) => record), ...members])
      pods.changed(pod.id);
    return { ...cluster, members };
  }

  async get(caller: Caller, id: string): Promise<ClusterView> {
    const [found, members] = await Promise.all([
      this.#context.store.clusters.find(caller.accountId, id),
      this.#context.store.clusters.members(caller.accountId, id),
    ]);
    if (found === undefined) throw notFound(KIND, id);
    return { ...found, members };
  }

  async list(caller: Caller): Promise<ClusterView[]> {
    const [found, members] = await Promise.all([
      this.#context.store.clusters.list(caller.accountId),
      this.#context.store.clusters.members(caller.accountId),
    ]);
    const byCluster = Map.groupBy(members, ({ clusterId }) => clusterId);
    return found.map((cluster) => ({ ...cluster, members: byCluster.get(cluster.id) ?? [] }));
  }

  /** Nothing else about a cluster can change. */
  async rename(caller: Caller, id: string, name: string | undefined): Promise<ClusterView> {
    if (name !== undefined) checkName(name);
    const changed = await this.#context.store.clusters.change(caller.accountId, id, (current) => {
      const record = {
        ...current,
        ...(name !== undefined && { name }),
        updatedAt: this.#context.clock.now(),
      };
      return {
        record,
        audit: auditOf(this.#context, caller, 'update', KIND, id, changesBetween(current, record)),
      };
    });
    if (changed === undefined) throw notFound(KIND, id);
    return { ...changed, members: await this.#context.store.clusters.members(caller.accountId, id) };
  }

  /** With it go all of its pods. */
  async remove(caller: Caller, id: string): Promise<void> {
    const now = this.#context.clock.now();
    const members = await this.#context.store.clusters.remove(
      caller.accountId,
      id,
      (member) => leftCluster(member, now),
      auditOf(this.#context, caller, 'delete', KIND, id),
    );
    if (members === undefined) throw notFound(KIND, id);
    for (const member of members) this.#parts.pods.changed(member.id);
    await Promise.all(members.map((member) => this.#parts.pods.seenDone(member.id)));
  }
}

/** How many members have which status. */
export function countByStatus(members: readonly Pod[]): Partial<Record<PodStatus, number>> {
  const counts: Partial<Record<PodStatus, number>> = {};
  for (const { status } of members) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

function isJoining({ network }: PodSite): boolean {
  return network !== undefined;
}

function checkName(name: string): void {
  const [finding] = nameFindings(name);
  if (finding !== undefined) throw rule(finding);
}

function memberName(name: string, rank: number): string {
  const end = `-node-${rank}`;
  return `${name.slice(0, MAX_NAME_LENGTH - end.length)}${end}`;
}
