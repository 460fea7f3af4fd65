import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import { BerthError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import type { PeerSignature } from '../../support/peer-signature.ts';
import type { InstanceEngine } from '../engine.ts';
import { delegateTo } from './led-engine.ts';
import { callPeer, logsFromPeer, peerPath } from './peer-client.ts';
import type { InstanceHosts, LabelledInstance } from './instance-hosts.ts';

export interface ClusterEngineDeps {
  local: InstanceEngine;
  dataCenterId: string;
  hosts: Pick<InstanceHosts, 'hostState' | 'findHost' | 'saveHosts'>;
  /** Whether this server manages this instance, where several share that. Default: the one that lists them does. */
  manages?(instance: LabelledInstance): boolean;
  signature: PeerSignature;
  log: Log;
}

/** The name of the engine of a cluster between servers. */
export function clusterName(dataCenterId: string): string {
  return `kubernetes:${dataCenterId}`;
}

/**
 * The engine of a cluster, which every server reaches. Only logs are kept on the disk of one server: the one
 * that led when the instance was started, or that has adopted it since.
 */
export function clusterEngine(deps: ClusterEngineDeps): InstanceEngine {
  const logs = new ClusterLogs(deps);
  const { local, manages } = deps;
  return {
    ...delegateTo(local),
    start: async (spec) => {
      await logs.keepHere([spec]);
      return local.start(spec);
    },
    list: async () => {
      const instances = await local.list();
      await logs.keepAdopted(manages === undefined ? instances : instances.filter(manages));
      return instances;
    },
    remove: async (id, graceMs) => {
      await local.remove(id, graceMs);
      logs.forget(id);
    },
    watch: (listener) => {
      // It begins to lead. Another server may have kept the logs since it did before.
      logs.forgetAll();
      return local.watch(listener);
    },
    deleteLog: (id) => logs.delete(id),
    logs: (id, query, signal) => logs.read(id, query, signal),
  };
}

class ClusterLogs {
  readonly #deps: ClusterEngineDeps;
  /** Instances whose logs are known to be kept here. */
  readonly #here = new Set<string>();

  constructor(deps: ClusterEngineDeps) {
    this.#deps = deps;
  }

  async keepHere(instances: readonly LabelledInstance[]): Promise<void> {
    await this.#deps.hosts.saveHosts(instances);
    for (const { id } of instances) this.#here.add(id);
  }

  /** If that cannot be stored now, the next list tries again. */
  async keepAdopted(instances: readonly LabelledInstance[]): Promise<void> {
    const unknown = instances.filter(({ id }) => !this.#here.has(id));
    if (unknown.length === 0) return;
    try {
      await this.keepHere(unknown);
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'the location of logs could not be stored; trying again');
    }
  }

  forget(id: string): void {
    this.#here.delete(id);
  }

  forgetAll(): void {
    this.#here.clear();
  }

  /** That of a server that does not answer is deleted there when its retention ends. */
  async delete(id: string): Promise<void> {
    const { local, dataCenterId, signature } = this.#deps;
    await local.deleteLog(id);
    const host = await this.#hostOf(id);
    if (host?.state !== 'up') return;
    const path = peerPath(clusterName(dataCenterId), 'deleteLog', [id]);
    await callPeer({ address: host.address, path, signature });
  }

  /** Without the server that keeps the log, what the cluster has of it, or this server. */
  async *read(id: string, query?: LogQuery, signal?: AbortSignal): AsyncGenerator<LogLine, void, undefined> {
    const { local, dataCenterId, signature } = this.#deps;
    const host = await this.#hostOf(id);
    let hasLines = false;
    let failure: unknown;
    if (host?.state === 'up') {
      const path = peerPath(clusterName(dataCenterId), 'logs', [id, query ?? null]);
      try {
        for await (const line of logsFromPeer({ address: host.address, path, signature, signal })) {
          hasLines = true;
          yield line;
        }
        return;
      } catch (error) {
        if (hasLines) throw error;
        failure = error;
      }
    }
    for await (const line of local.logs(id, query, signal)) {
      hasLines = true;
      yield line;
    }
    if (hasLines || signal?.aborted === true) return;
    if (failure !== undefined || host?.state === 'away')
      throw new BerthError('unavailable', 'the server with this log does not answer now; try again', {
        cause: failure,
      });
  }

  async #hostOf(id: string): Promise<ReturnType<InstanceHosts['hostState']> | undefined> {
    const { hosts } = this.#deps;
    const hostId = await hosts.findHost(id);
    return hostId === undefined ? undefined : hosts.hostState(hostId);
  }
}
