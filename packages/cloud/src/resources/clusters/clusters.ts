import { notFound, ruleError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { auditEntry, diffRecords, withinQuotas } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import { placeOrInterrupt } from '../../domain/placement/pod-interruption.ts';
import { terminateWithCluster } from '../../domain/pods/pod-transitions.ts';
import { placeCluster } from '../../domain/placement/pod-placement.ts';
import type { PodCandidate } from '../../domain/placement/pod-placement.ts';
import type { Pods } from '../pods/pods.ts';
import { nameFindings } from '../../domain/templates/template-rules.ts';
import {
  freeSubnet,
  LOOPBACK_RANGE,
  rendezvousPort,
  memberAddress,
  memberHostName,
} from '../../domain/clusters/cluster-network.ts';
import type { NewCluster } from '../../domain/clusters/new-cluster.ts';
import { clusterRole } from '../../domain/clusters/cluster-roles.ts';
import type { Pod, PodStatus } from '../../domain/pods/pod-record.ts';
import type { Cluster } from '../../domain/clusters/cluster-record.ts';
import { MAX_NAME_LENGTH, CLUSTER_POD_COUNT } from '../../domain/limits.ts';

const RESOURCE = 'cluster';

export interface ClustersDeps {
  pods: Pods;
  /** The address range for cluster subnets, on engines that give each cluster a network. */
  networkRange: string;
}

/** A cluster with its member pods. */
export interface ClusterView extends Cluster {
  /** Ordered by rank. */
  members: Pod[];
}

/**
 * Groups of identical pods in one data center that share a network. Members are created and deleted together.
 */
export class Clusters {
  readonly #context: ResourceContext;
  readonly #deps: ClustersDeps;

  constructor(context: ResourceContext, deps: ClustersDeps) {
    this.#context = context;
    this.#deps = deps;
  }

  /** Places all pods of the cluster in one transaction; if one does not fit, no cluster is created. */
  async create(caller: Caller, { name, type, podCount, pod: podInput }: NewCluster): Promise<ClusterView> {
    const { store, clock, ids } = this.#context;
    const { pods, networkRange } = this.#deps;
    checkName(name);
    if (
      !Number.isInteger(podCount) ||
      podCount < CLUSTER_POD_COUNT.minimum ||
      podCount > CLUSTER_POD_COUNT.maximum
    )
      throw ruleError(
        `podCount must be a whole number from ${CLUSTER_POD_COUNT.minimum} to ` +
          `${CLUSTER_POD_COUNT.maximum}, got ${podCount}`,
      );
    const prepared = await pods.prepare(caller, podInput);
    const subnetsByDataCenter = await Promise.all(
      prepared.candidates.map(
        async (site) => [site.dataCenterId, (await site.subnetsInUse?.()) ?? []] as const,
      ),
    );
    const id = ids.resource();
    const now = clock.now();
    const gpus = prepared.hardware.compute === 'GPU' ? prepared.hardware.gpuCount : 0;
    const needs = { pods: podCount, gpus: podCount * gpus, logBytes: 1, spendPerMonth: 0 };
    const inserted = await withinQuotas(this.#context, caller.accountId, needs, () =>
      store.clusters.insert(caller.accountId, prepared.referenceIds, (references) => {
        const { volume } = prepared.checkReferences(references);
        const { placement, interrupted } = placeOrInterrupt(
          (sites, held) => placeCluster(prepared.hardware, podCount, volume, sites, held),
          prepared.candidates.filter(supportsClusterNetwork),
          references,
          now,
        );
        const mode = prepared.candidates.find(
          ({ dataCenterId }) => dataCenterId === placement.dataCenterId,
        )?.network;
        const usesLoopback = mode === 'loopback';
        const subnetsInUse = subnetsByDataCenter.flatMap(([dataCenterId, subnets]) =>
          dataCenterId === placement.dataCenterId ? subnets : [],
        );
        const subnet =
          mode === 'names'
            ? null
            : freeSubnet(id, usesLoopback ? LOOPBACK_RANGE : networkRange, [
                ...references.subnets,
                ...subnetsInUse,
              ]);
        const templateId = podInput.template?.id ?? null;
        const record: Cluster = {
          id,
          accountId: caller.accountId,
          name,
          type,
          gpuTypeId: placement.gpuTypeId ?? '',
          gpuCountPerPod: placement.gpuCount,
          podCount,
          templateId,
          dataCenterId: placement.dataCenterId,
          subnet,
          createdAt: now,
          updatedAt: now,
        };
        const sharedMembership = {
          size: podCount,
          primaryAddress: subnet === null ? memberHostName(0) : memberAddress(subnet, 0),
          primaryPort: rendezvousPort(subnet, usesLoopback),
          subnet,
        };
        const newMembers = Array.from(
          { length: podCount },
          (_, rank): Pod => ({
            ...prepared.build(ids.resource(), placement, volume),
            name: memberName(name, rank),
            templateId,
            clusterId: id,
            membership: {
              ...sharedMembership,
              rank,
              role: clusterRole(type, rank),
              address: subnet === null ? null : memberAddress(subnet, rank),
            },
          }),
        );
        return {
          cluster: record,
          members: newMembers,
          audit: auditEntry(this.#context, caller, 'create', RESOURCE, id),
          interrupted: pods.auditInterruptions(interrupted),
        };
      }),
    );
    const { cluster, members } = inserted;
    for (const pod of [...(inserted.interrupted ?? []).map(({ record }) => record), ...members])
      pods.notifyChanged(pod.id);
    return { ...cluster, members };
  }

  async get(caller: Caller, id: string): Promise<ClusterView> {
    const [found, members] = await Promise.all([
      this.#context.store.clusters.find(caller.accountId, id),
      this.#context.store.clusters.listMembers(caller.accountId, id),
    ]);
    if (found === undefined) throw notFound(RESOURCE, id);
    return { ...found, members };
  }

  async list(caller: Caller): Promise<ClusterView[]> {
    const [found, members] = await Promise.all([
      this.#context.store.clusters.list(caller.accountId),
      this.#context.store.clusters.listMembers(caller.accountId),
    ]);
    const byCluster = Map.groupBy(members, ({ clusterId }) => clusterId);
    return found.map((cluster) => ({ ...cluster, members: byCluster.get(cluster.id) ?? [] }));
  }

  /** The name is the only field of a cluster that can be changed. */
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
        audit: auditEntry(this.#context, caller, 'update', RESOURCE, id, diffRecords(current, record)),
      };
    });
    if (changed === undefined) throw notFound(RESOURCE, id);
    return { ...changed, members: await this.#context.store.clusters.listMembers(caller.accountId, id) };
  }

  /** Also terminates all of its pods. */
  async remove(caller: Caller, id: string): Promise<void> {
    const now = this.#context.clock.now();
    const members = await this.#context.store.clusters.remove(
      caller.accountId,
      id,
      (member) => terminateWithCluster(member, now),
      auditEntry(this.#context, caller, 'delete', RESOURCE, id),
    );
    if (members === undefined) throw notFound(RESOURCE, id);
    for (const member of members) this.#deps.pods.notifyChanged(member.id);
    await Promise.all(members.map((member) => this.#deps.pods.waitUntilSettled(member.id)));
  }
}

/** The number of members by status. */
export function countByStatus(members: readonly Pod[]): Partial<Record<PodStatus, number>> {
  const counts: Partial<Record<PodStatus, number>> = {};
  for (const { status } of members) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

function supportsClusterNetwork({ network }: PodCandidate): boolean {
  return network !== undefined;
}

function checkName(name: string): void {
  const [finding] = nameFindings(name);
  if (finding !== undefined) throw ruleError(finding);
}

function memberName(name: string, rank: number): string {
  const suffix = `-node-${rank}`;
  return `${name.slice(0, MAX_NAME_LENGTH - suffix.length)}${suffix}`;
}
