import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import type { PeerSignature } from '../../support/peer-signature.ts';
import type { InstanceEngine } from '../engine.ts';
import type { InstanceFiles } from '../instance-files.ts';
import type { Instance, InstanceAddress, InstanceEvent, InstanceHandle, InstanceUsage } from '../instance.ts';
import type { InstanceHosts, ReachableHost } from './instance-hosts.ts';
import { delegateTo } from './led-engine.ts';
import { remoteExecution } from './execution-frames.ts';
import { callPeer, connectToPeer, logsFromPeer, peerPath, streamFromPeer } from './peer-client.ts';

export function sharedEngine(deps: SharedEngineDeps): InstanceEngine {
  const shared = new SharedEngine(deps);
  const { local } = deps;
  return {
    ...delegateTo(local),
    ...(local.files !== undefined && { files: shared.files(local.files) }),
    start: (spec) => shared.start(spec),
    adopt: (handle) => shared.adopt(handle),
    findElsewhere: (id) => shared.findElsewhere({ engine: local.kind, id, state: {} }),
    list: () => shared.list(),
    stop: (id, graceMs) => shared.stop(id, graceMs),
    remove: (id, graceMs) => shared.remove(id, graceMs),
    deleteLog: (id) => shared.deleteLog(id),
    watch: (listener) => shared.watch(listener),
    logs: (id, query, signal) => shared.logs(id, query, signal),
    logSystemLine: (id, line) => shared.logSystemLine(id, line),
    exec: (id, argv, options) => shared.exec(id, argv, options),
    address: (id, port) => shared.address(id, port),
    usage: (id) => shared.usage(id),
    close: async () => {
      shared.close();
      await local.close();
    },
  };
}

const WATCH_EVERY_MS = 1_000;
/** A server that takes over from a frozen one cannot wait longer for what ran there. */
const LATE_LIST_TIMEOUT_MS = 1_000;
const LOOPBACK = /^(?:127\.|localhost$|\[?::1\]?$|0\.0\.0\.0$)/;

export interface SharedEngineDeps {
  local: InstanceEngine;
  hosts: InstanceHosts;
  signature: PeerSignature;
  clock: Clock;
  log: Log;
}

/**
 * An engine of this machine together with those of the same kind on the machines of the other servers.
 * Instances are started here; everything else goes to the machine where the instance runs.
 */
class SharedEngine {
  readonly #deps: SharedEngineDeps;
  /** Instances of other machines, by id. An id stays with its machine while it runs. */
  readonly #elsewhere = new Map<string, string>();
  readonly #listeners = new Set<(event: InstanceEvent) => void>();
  /** Machines that did not list their instances, and when that was. */
  readonly #silentSince = new Map<string, number>();
  /** Machines that are being asked what runs there. */
  readonly #asked = new Set<string>();
  #watching: NodeJS.Timeout | undefined;

  constructor(deps: SharedEngineDeps) {
    this.#deps = deps;
  }

  /** Undefined for an instance of this machine. */
  async #remote(id: string): Promise<string | undefined> {
    const { hosts, local } = this.#deps;
    const known = this.#elsewhere.get(id);
    if (known !== undefined) return known;
    const hostId = await hosts.findHost(id);
    if (hostId === undefined || hosts.hostState(hostId).state === 'here') return undefined;
    // Servers on several data directories may share one Docker daemon.
    if (local.kind !== 'process' && (await local.list()).some((instance) => instance.id === id))
      return undefined;
    return hostId;
  }

  #call<T>(address: string, operation: string, args: unknown[], timeoutMs?: number): Promise<T> {
    return callPeer<T>({
      address,
      path: this.#path(operation, args),
      signature: this.#deps.signature,
      ...(timeoutMs !== undefined && { timeoutMs }),
    });
  }

  #path(operation: string, args: unknown[]): string {
    return peerPath(this.#deps.local.kind, operation, args);
  }

  /** A machine that has just not answered is not waited for again. */
  async #listAt(hostId: string, { address, isLate }: ReachableHost): Promise<Instance[]> {
    const silentFor = performance.now() - (this.#silentSince.get(hostId) ?? -Infinity);
    if (silentFor < LATE_LIST_TIMEOUT_MS)
      throw new BerthError('unavailable', `the server at ${address} did not answer just now; try again`);
    try {
      const listed = await this.#call<Instance[]>(
        address,
        'list',
        [],
        isLate ? LATE_LIST_TIMEOUT_MS : undefined,
      );
      this.#silentSince.delete(hostId);
      return listed;
    } catch (error) {
      this.#silentSince.set(hostId, performance.now());
      throw error;
    }
  }

  #addressOf(hostId: string): string {
    return this.#reachable(hostId).address;
  }

  /** A server on this machine. Throws while none answers. */
  #reachable(hostId: string): ReachableHost {
    const found = this.#deps.hosts.hostState(hostId);
    if (found.state === 'up') return found;
    throw new BerthError(
      'unavailable',
      found.state === 'lost'
        ? 'the machine where this ran is gone'
        : 'the server where this runs does not answer now; try again',
    );
  }

  async start(spec: Parameters<InstanceEngine['start']>[0]): Promise<InstanceHandle> {
    this.#elsewhere.delete(spec.id);
    await this.#deps.hosts.saveHosts([spec]);
    return this.#deps.local.start(spec);
  }

  /** An instance of a machine that does not answer is taken to run, until that machine is lost. */
  async adopt(handle: InstanceHandle): Promise<Instance | undefined> {
    const hostId = await this.#remote(handle.id);
    return hostId === undefined ? this.#deps.local.adopt(handle) : this.findElsewhere(handle);
  }

  async findElsewhere(handle: InstanceHandle): Promise<Instance | undefined> {
    const { hosts, clock } = this.#deps;
    const hostId = await this.#remote(handle.id);
    if (hostId === undefined || hosts.hostState(hostId).state === 'lost') return undefined;
    this.#elsewhere.set(handle.id, hostId);
    try {
      const listed = await this.#listAt(hostId, this.#reachable(hostId));
      return listed.find(({ id }) => id === handle.id);
    } catch {
      return {
        id: handle.id,
        labels: {},
        image: '',
        handle,
        status: 'running',
        startedAt: clock.now(),
        endedAt: null,
        exitCode: null,
        signal: null,
      };
    }
  }

  async list(): Promise<Instance[]> {
    const { local, hosts, log } = this.#deps;
    const found = new Map<string, Instance>();
    await Promise.all(
      hosts.otherHosts.map(async ({ hostId, ...host }) => {
        try {
          for (const instance of await this.#listAt(hostId, host)) {
            found.set(instance.id, instance);
            this.#elsewhere.set(instance.id, hostId);
          }
        } catch (error) {
          log.warn({ err: error, hostId }, 'the instances of another machine could not be listed');
        }
      }),
    );
    for (const instance of await local.list()) {
      found.set(instance.id, instance);
      this.#elsewhere.delete(instance.id);
    }
    return [...found.values()];
  }

  async stop(id: string, graceMs: number): Promise<void> {
    await this.#end(id, (local) => local.stop(id, graceMs), ['stop', [id, graceMs], graceMs]);
  }

  async remove(id: string, graceMs?: number): Promise<void> {
    await this.#end(id, (local) => local.remove(id, graceMs), [
      'remove',
      [id, graceMs ?? null],
      graceMs ?? 0,
    ]);
    this.#elsewhere.delete(id);
  }

  async deleteLog(id: string): Promise<void> {
    await this.#end(id, (local) => local.deleteLog(id), ['deleteLog', [id], 0]);
  }

  /**
   * What ran on a lost machine has ended. If its server comes back, the leading one removes what is left
   * there.
   */
  async #end(
    id: string,
    here: (local: InstanceEngine) => Promise<void>,
    [operation, args, graceMs]: [string, unknown[], number],
  ): Promise<void> {
    const { local, hosts } = this.#deps;
    const hostId = await this.#remote(id);
    if (hostId === undefined) return here(local);
    if (hosts.hostState(hostId).state === 'lost') return;
    await this.#call(this.#addressOf(hostId), operation, args, graceMs + 15_000);
  }

  /** Exits on other machines are noticed by listing their instances every few seconds. */
  watch(listener: (event: InstanceEvent) => void): () => void {
    const stop = this.#deps.local.watch(listener);
    this.#listeners.add(listener);
    this.#watching ??= setInterval(() => void this.#checkOtherHosts(), WATCH_EVERY_MS).unref();
    return () => {
      stop();
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      clearInterval(this.#watching);
      this.#watching = undefined;
    };
  }

  async #checkOtherHosts(): Promise<void> {
    const { hosts } = this.#deps;
    for (const hostId of new Set(this.#elsewhere.values())) {
      const host = hosts.hostState(hostId);
      const known = [...this.#elsewhere].flatMap(([id, where]) => (where === hostId ? [id] : []));
      if (host.state === 'here' || host.state === 'lost') for (const id of known) this.#exited(id, undefined);
      if (host.state !== 'up' || this.#asked.has(hostId)) continue;
      this.#asked.add(hostId);
      const listed = await this.#listAt(hostId, host).catch(() => undefined);
      this.#asked.delete(hostId);
      if (listed === undefined) continue;
      for (const id of known) {
        const instance = listed.find((one) => one.id === id);
        if (instance === undefined || instance.status === 'exited') this.#exited(id, instance);
      }
    }
  }

  #exited(id: string, instance: Instance | undefined): void {
    if (!this.#elsewhere.delete(id)) return;
    const event: InstanceEvent = {
      id,
      status: 'exited',
      exitCode: instance?.exitCode ?? null,
      signal: instance?.signal ?? null,
      at: instance?.endedAt ?? this.#deps.clock.now(),
    };
    for (const listener of this.#listeners) listener(event);
  }

  async *logs(id: string, query?: LogQuery, signal?: AbortSignal): AsyncGenerator<LogLine> {
    const hostId = await this.#remote(id);
    if (hostId === undefined) return yield* this.#deps.local.logs(id, query, signal);
    yield* logsFromPeer({
      address: this.#addressOf(hostId),
      path: this.#path('logs', [id, query ?? null]),
      signature: this.#deps.signature,
      signal,
    });
  }

  async logSystemLine(id: string, line: string): Promise<void> {
    const hostId = await this.#remote(id);
    if (hostId === undefined) return this.#deps.local.logSystemLine(id, line);
    await this.#call(this.#addressOf(hostId), 'logSystemLine', [id, line]);
  }

  async exec(...[id, argv, options]: Parameters<InstanceEngine['exec']>): ReturnType<InstanceEngine['exec']> {
    const hostId = await this.#remote(id);
    if (hostId === undefined) return this.#deps.local.exec(id, argv, options);
    const path = this.#path('exec', [id, argv, options ?? null]);
    return remoteExecution(
      await connectToPeer({ address: this.#addressOf(hostId), path, signature: this.#deps.signature }),
    );
  }

  /** A port on the loopback of another machine is that machine's own: it has to listen on all addresses. */
  async address(id: string, port: number): Promise<InstanceAddress | undefined> {
    const hostId = await this.#remote(id);
    if (hostId === undefined) return this.#deps.local.address(id, port);
    const server = this.#addressOf(hostId);
    const found = await this.#call<InstanceAddress | undefined>(server, 'address', [id, port]);
    return found && LOOPBACK.test(found.host) ? { ...found, host: new URL(server).hostname } : found;
  }

  async usage(id: string): Promise<InstanceUsage | undefined> {
    const hostId = await this.#remote(id);
    if (hostId === undefined) return this.#deps.local.usage(id);
    return this.#call<InstanceUsage | undefined>(this.#addressOf(hostId), 'usage', [id]);
  }

  files(local: InstanceFiles): InstanceFiles {
    const { signature } = this.#deps;
    return {
      stat: async (id, path) => {
        const hostId = await this.#remote(id);
        if (hostId === undefined) return local.stat(id, path);
        return this.#call(this.#addressOf(hostId), 'stat', [id, path]);
      },
      read: async (id, path) => {
        const hostId = await this.#remote(id);
        if (hostId === undefined) return local.read(id, path);
        return streamFromPeer({
          address: this.#addressOf(hostId),
          path: this.#path('read', [id, path]),
          signature,
        });
      },
      write: async (id, folder, tar) => {
        const hostId = await this.#remote(id);
        if (hostId === undefined) return local.write(id, folder, tar);
        const path = this.#path('write', [id, folder]);
        await callPeer({
          address: this.#addressOf(hostId),
          path,
          signature,
          body: tar,
          timeoutMs: undefined,
        });
      },
    };
  }

  close(): void {
    clearInterval(this.#watching);
  }
}
