import { existsSync } from 'node:fs';
import { ROOT_ACCOUNT_ID } from '../../domain/caller.ts';
import type { LogLimits } from '../../domain/limits.ts';
import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { Ids } from '../../support/ids.ts';
import type { InstanceHandle, InstanceSpec } from '../instance.ts';
import type { LogRetention } from '../logs/log-retention.ts';
import type { SegmentedLog } from '../logs/segmented-log.ts';
import type { Cgroups } from './cgroups.ts';
import type { HostAllocations } from './host-allocations.ts';
import type { ImageEnvironments } from './image-environments.ts';
import type { Tenants } from './isolation/tenant.ts';
import type { LocalImagePaths } from './local-images.ts';
import type { ProcessHost } from './process-host.ts';
import { type LaunchedProcess, launchProcess } from './process-launch.ts';
import type { ProcessRegistry } from './process-registry.ts';
import type { InstancePython } from './python/python-environments.ts';
import type { RemovedFolders } from './removed-folders.ts';
import { StartLog } from './start-log.ts';

export interface ProcessStarterDeps {
  /** The folder of all instance folders. */
  path: string;
  /** Berth's data folder. */
  data: string;
  imagePaths: LocalImagePaths;
  /** Folders that instances of all accounts may read, as far as they exist. */
  readable: readonly string[];
  registry: ProcessRegistry;
  logs: LogRetention;
  logLimits: LogLimits;
  environments: ImageEnvironments;
  host: ProcessHost;
  tenants: Tenants;
  allocations: HostAllocations;
  removed: RemovedFolders;
  clock: Clock;
  ids: Ids;
}

export interface ProcessStartContext {
  cgroups: Cgroups | undefined;
  signal: AbortSignal;
  onLogOpened: (log: SegmentedLog) => void;
}

/** Starts instances: environment, log, process. The caller sees to it that an instance is started once at a time. */
export class ProcessStarter {
  readonly #deps: ProcessStarterDeps;

  constructor(deps: ProcessStarterDeps) {
    this.#deps = deps;
  }

  async start(spec: InstanceSpec, context: ProcessStartContext): Promise<InstanceHandle> {
    const { registry, logs, logLimits, clock, environments } = this.#deps;
    const existing = registry.get(spec.id);
    if (existing !== undefined && existing.isRunning && !existing.isStopping) return existing.handle;
    await existing?.gone;
    registry.emit({ id: spec.id, status: 'starting', exitCode: null, signal: null, at: clock.now() });
    const startLog = new StartLog({
      id: spec.id,
      logs,
      logBytes: logLimits.bytes,
      clock,
      onOpened: context.onLogOpened,
      onProgress: spec.onProgress,
    });
    const python = await environments.ensure(spec, startLog, context.signal);
    spec.onImageReady?.();
    const { ended, log, ...launched } = await this.#launch(spec, context, python, startLog);
    const instance = registry.track(launched);
    instance.captureOutput(log);
    registry.emitStatus(instance);
    void ended.then(() => instance.onSupervisorExit());
    return instance.handle;
  }

  async #launch(
    spec: InstanceSpec,
    { cgroups }: ProcessStartContext,
    python: InstancePython | undefined,
    startLog: StartLog,
  ): Promise<LaunchedProcess> {
    const { host, tenants, removed, logLimits, readable, ...deps } = this.#deps;
    const hostResources = await host.resources();
    const openedLog = await startLog.opened();
    const launchDeps = {
      ...deps,
      readable: readable.filter((path) => existsSync(path)),
      removedFolders: removed,
      logBytes: logLimits.bytes,
      cgroups,
      python,
      openedLog,
    };
    try {
      const tenant = await tenants.startingTenantOf(spec.labels['account'] ?? ROOT_ACCOUNT_ID);
      return await launchProcess(spec, hostResources, launchDeps, tenant);
    } catch (error) {
      if (error instanceof BerthError) throw error;
      throw new BerthError('unavailable', `${spec.id} could not be started: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }
}
