import type { Readable } from 'node:stream';
import type { InstanceEngine } from '../../engines/engine.ts';
import type { InstanceFile } from '../../engines/instance-files.ts';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import type { PodReferences, PodReferenceIds } from '../../store/pod-store.ts';
import type { NetworkVolume, PageRequest, Template } from '../../domain/records.ts';
import type { ChangeNotifier } from '../../support/change-notifier.ts';
import { BerthError, notFound, ruleError, schemaError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { CPU_FLAVORS } from '../../domain/catalog/cpu-flavors.ts';
import type { PriceSettings } from '../../domain/catalog/prices.ts';
import { auditEntry, diffRecords } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import { cpuFindings } from '../../domain/catalog/cpu-selection.ts';
import { gpuFindings, normalizeGpuIds } from '../../domain/catalog/gpu-selection.ts';
import { dataCenterFindings } from '../../domain/endpoints/endpoint-locations.ts';
import { POD_ACCESS_DENIED } from '../../domain/caller.ts';
import type { Templates } from '../templates/templates.ts';
import { podHourlyCost, bidFindings } from '../../domain/hourly-cost.ts';
import { withoutInterruptible, placeOrInterrupt } from '../../domain/placement/pod-interruption.ts';
import {
  requestNewInstance,
  requestRestart,
  requestStart,
  requestStop,
  requestTermination,
} from '../../domain/pods/pod-transitions.ts';
import { podFiles } from './pod-file-access.ts';
import { podLog } from './pod-log.ts';
import { applyTemplate, POD_DEFAULTS, podFieldsFromTemplate } from '../../domain/pods/pod-input.ts';
import type { NewPod, PodInput, PodTemplateUse } from '../../domain/pods/pod-input.ts';
import { placeExistingPod, placePod } from '../../domain/placement/pod-placement.ts';
import type { HardwareRequest, PodPlacement, PodCandidate } from '../../domain/placement/pod-placement.ts';
import {
  podChangeFindings,
  needsNewInstance,
  podFindings,
  hardwareFindings,
} from '../../domain/pods/pod-rules.ts';
import { PodRuntimeReader } from './pod-runtime.ts';
import type { PodPort, PodRuntime } from './pod-runtime.ts';
import { checkAction, lockedError } from '../../domain/pods/pod-states.ts';
import { workerAsPod } from './worker-as-pod.ts';
import type { WorkerPod } from './worker-as-pod.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';
import type { AuditedChange } from '../../store/collection.ts';
import { readCatalogSnapshot } from '../catalog/read-catalog-snapshot.ts';

const RESOURCE = 'pod';
/** Values of the environment are nobody's business but the container's; what the keeper writes down is no change of a person's. */
const AUDIT_HIDDEN_FIELDS: (keyof Pod)[] = ['env'];
/** How long whoever stops or terminates a pod waits to see it done. Clients give up after ten seconds. */
const SETTLE_TIMEOUT_MS = 8_000;

export interface PodsDeps {
  catalog: Catalog;
  templates: Templates;
  prices: PriceSettings;
  /** By data center. */
  engines: ReadonlyMap<string, InstanceEngine>;
  changes: ChangeNotifier;
  /** The password that Jupyter has in a pod. */
  jupyterPassword(podId: string): string;
}

/** An order that has been checked, and needs a place. */
export interface PreparedPod {
  interruptible: boolean;
  hardware: HardwareRequest;
  candidates: PodCandidate[];
  referenceIds: PodReferenceIds;
  /** Refuses where something that it refers to is not there. */
  checkReferences(footing: PodReferences): { volume: NetworkVolume | undefined };
  build(id: string, place: PodPlacement, volume: NetworkVolume | undefined): Pod;
}

/** How a pod is started again. */
export interface StartPodOptions {
  gpuCount?: number;
  bidPerGpu?: number;
}

export class Pods {
  readonly #context: ResourceContext;
  readonly #deps: PodsDeps;
  readonly #runtimes: PodRuntimeReader;

  constructor(context: ResourceContext, deps: PodsDeps) {
    this.#context = context;
    this.#deps = deps;
    this.#runtimes = new PodRuntimeReader(deps.engines, context.clock);
  }

  async create(caller: Caller, order: NewPod): Promise<Pod> {
    const { store, ids, clock } = this.#context;
    const id = ids.resource();
    const { hardware, interruptible, candidates, referenceIds, checkReferences, build } = await this.prepare(
      caller,
      order,
      id,
    );
    let going: Pod[] = [];
    const created = await store.pods.insert(caller.accountId, referenceIds, (found) => {
      const { volume } = checkReferences(found);
      const { placement, interrupted } = placeOrInterrupt(
        (at, held) => placePod(hardware, volume, at, held),
        candidates,
        interruptible ? withoutInterruptible(found) : found,
        clock.now(),
      );
      going = interrupted;
      return {
        record: build(id, placement, volume),
        audit: auditEntry(this.#context, caller, 'create', RESOURCE, id),
        interrupted: this.auditInterruptions(interrupted),
      };
    });
    for (const pod of [...going, created]) this.#publishChange(pod.id);
    return created;
  }

  /** Checks an order as far as that is possible before it has a place. `id` is that of the pod, or of an example where several are made. */
  async prepare(caller: Caller, order: NewPod, id = this.#context.ids.resource()): Promise<PreparedPod> {
    const now = this.#context.clock.now();
    const hardware = await this.#checkedHardware(order.hardware);
    const template = await this.#template(caller, order.template);
    const wantedAs = (podId: string): Pod => {
      const blank: Pod = {
        ...POD_DEFAULTS,
        ...order.defaults,
        compute: hardware.compute,
        id: podId,
        accountId: caller.accountId,
        createdAt: now,
        updatedAt: now,
        statusChangedAt: now,
      };
      const base: Pod = {
        ...blank,
        ...(template && podFieldsFromTemplate(template, caller.accountId, hardware.compute)),
        ...(order.networkVolumeId !== undefined && { volumeSize: 0 }),
      };
      return this.#withReferences(order, {
        ...base,
        ...order.settings(base),
        templateId: order.template?.isRecorded === true ? order.template.id : null,
        networkVolumeId: order.networkVolumeId ?? null,
      });
    };
    const wanted = wantedAs(id);
    throwFindings([
      ...podFindings(wanted),
      ...hardwareFindings(hardware),
      ...bidFindings(this.#deps.prices, hardware.gpuTypeIds, wanted),
    ]);
    return {
      interruptible: wanted.interruptible,
      hardware: { ...hardware, cuda: this.#cuda(hardware, template) },
      candidates: await this.#sites(wanted.image),
      referenceIds: {
        ...registryOf(order),
        ...(order.networkVolumeId !== undefined && { volumeId: order.networkVolumeId }),
        needsPlacement: true,
      },
      checkReferences: ({ registryFound, volume }) => {
        checkRegistry(order, registryFound);
        if (order.networkVolumeId !== undefined && volume === undefined)
          throw ruleError(
            `network volume ${JSON.stringify(order.networkVolumeId.slice(0, 64))} does not exist in this account; create it first or leave it out`,
          );
        return { volume };
      },
      build: (podId, place, volume) => {
        // A network volume is there in the secure cloud alone.
        const record: Pod = {
          ...wantedAs(podId),
          ...place,
          ...(volume !== undefined && { cloud: 'SECURE' }),
        };
        return { ...record, costPerHour: podHourlyCost(this.#deps.prices, record) };
      },
    };
  }

  /** The entries of those who have to make room: nobody asked for that by name. */
  auditInterruptions(interrupted: readonly Pod[]): AuditedChange<Pod>[] {
    return interrupted.map((record) => ({
      record,
      audit: {
        at: this.#context.clock.now(),
        accountId: record.accountId,
        keyId: null,
        interface: 'system',
        requestId: '',
        action: 'interrupt',
        resource: RESOURCE,
        resourceId: record.id,
        changes: [],
      },
    }));
  }

  /** Something else is wanted of a pod, which was written elsewhere. */
  notifyChanged(id: string): void {
    this.#publishChange(id);
  }

  /** Only what is said changes. A running pod gets a new instance where that is built into the old one. */
  async update(caller: Caller, id: string, change: PodInput): Promise<Pod> {
    const template = await this.#template(caller, change.template);
    const changed = await this.#change(
      caller,
      id,
      'update',
      (current, now, { registryFound }) => {
        checkRegistry(change, registryFound);
        refuseClusterMember(current, 'changed');
        const base = template === undefined ? current : applyTemplate(current, template);
        const edited = this.#withReferences(change, { ...base, ...change.settings(base), updatedAt: now });
        throwFindings([...podFindings(edited), ...podChangeFindings(current, edited)]);
        if (current.wanted !== 'running' || !needsNewInstance(current, edited)) return edited;
        if (current.locked && edited.locked) throw lockedError(id, 'be changed in a way that resets it');
        return requestNewInstance(edited, now, 'Restarting after a change');
      },
      registryOf(change),
    );
    return changed;
  }

  async start(caller: Caller, id: string, wish: StartPodOptions = {}): Promise<Pod> {
    const present = await this.get(caller, id);
    const sites = await this.#sites(present.image);
    let going: Pod[] = [];
    const changed = await this.#change(
      caller,
      id,
      'start',
      (current, now, footing) => {
        const gpuCount = wish.gpuCount ?? current.gpuCount;
        const { bidPerGpu } = wish;
        if (bidPerGpu !== undefined && !current.interruptible)
          throw ruleError(`pod ${id} is not interruptible, so it has no bid; resume it without one`);
        const asked: Pod = bidPerGpu === undefined ? current : { ...current, bidPerGpu };
        throwFindings([
          ...podFindings(asked),
          ...gpuCountFindings(current, gpuCount),
          ...bidFindings(this.#deps.prices, current.gpuTypeId === null ? [] : [current.gpuTypeId], asked),
        ]);
        // The state is told before the hardware: a pod that runs needs no room to start.
        checkAction(current, 'start');
        const { placement, interrupted } = placeOrInterrupt(
          (at, taken) => placeExistingPod(asked, gpuCount, at, taken),
          sites,
          asked.interruptible ? withoutInterruptible(footing) : footing,
          now,
        );
        going = interrupted;
        return {
          record: requestStart(
            asked,
            placement,
            podHourlyCost(this.#deps.prices, { ...asked, ...placement }),
            now,
          ),
          interrupted: this.auditInterruptions(interrupted),
        };
      },
      { needsPlacement: true },
    );
    for (const pod of going) this.#publishChange(pod.id);
    return changed;
  }

  async stop(caller: Caller, id: string): Promise<Pod> {
    const asked = await this.#change(caller, id, 'stop', (current, now) => requestStop(current, now));
    return (await this.waitUntilSettled(id)) ?? asked;
  }

  restart(caller: Caller, id: string): Promise<Pod> {
    return this.#change(caller, id, 'restart', (current, now) => requestRestart(current, 'restart', now));
  }

  /** A fresh container from the image; what is on volumes stays. */
  reset(caller: Caller, id: string): Promise<Pod> {
    return this.#change(caller, id, 'reset', (current, now) => requestRestart(current, 'reset', now));
  }

  /** With it go its container and its volume disk. */
  async terminate(caller: Caller, id: string): Promise<void> {
    await this.#change(caller, id, 'delete', (current, now) =>
      requestTermination(refuseClusterMember(current, 'terminated'), now),
    );
    await this.waitUntilSettled(id);
  }

  async get(caller: Caller, id: string): Promise<Pod> {
    checkPodCaller(caller, id);
    const found = await this.#context.store.pods.find(caller.accountId, id);
    if (found === undefined) throw notFound(RESOURCE, id);
    return found;
  }

  list(caller: Caller, page?: PageRequest): Promise<Pod[]> {
    return this.#context.store.pods.list(caller.accountId, page);
  }

  /** Workers, as the older interfaces show them among the pods. */
  async workers(caller: Caller, endpointId?: string): Promise<WorkerPod[]> {
    const { store } = this.#context;
    const [endpoints, workers] = await Promise.all([
      store.endpoints.list(caller.accountId),
      store.workers.listLiveWorkers(endpointId),
    ]);
    const known = new Map(endpoints.map((endpoint) => [endpoint.id, endpoint]));
    return workers.flatMap((worker) => {
      const endpoint = worker.accountId === caller.accountId ? known.get(worker.endpointId) : undefined;
      return endpoint === undefined ? [] : [workerAsPod(worker, endpoint, this.#deps.prices)];
    });
  }

  /** How it is at this moment; null unless it runs. */
  runtime(pod: Pod): Promise<PodRuntime | null> {
    return this.#runtimes.read(pod);
  }

  /** Whether the size of its container disk is a limit, or only a number: not every engine can keep it. */
  async limitsContainerDisk({ dataCenterId }: Pod): Promise<boolean> {
    try {
      return (await this.#deps.engines.get(dataCenterId)?.limitsContainerDisk?.()) ?? false;
    } catch (error) {
      if (error instanceof BerthError && error.code === 'unavailable') return false;
      throw error;
    }
  }

  /** What Jupyter asks for in this pod. */
  jupyterPassword(podId: string): string {
    return this.#deps.jupyterPassword(podId);
  }

  ports(pod: Pod): Promise<PodPort[]> {
    return this.#runtimes.ports(pod);
  }

  /** Its log from its first start on; also of one that was terminated, as long as that is kept. */
  async logs(
    caller: Caller,
    id: string,
    query: LogQuery,
    signal: AbortSignal,
  ): Promise<AsyncIterable<LogLine>> {
    checkPodCaller(caller, id);
    const { pods } = this.#context.store;
    const pod = await pods.findInAnyAccount(id);
    if (pod === undefined || pod.accountId !== caller.accountId) throw notFound(RESOURCE, id);
    return podLog({
      pod,
      query,
      signal,
      engine: this.#deps.engines.get(pod.dataCenterId),
      changes: this.#deps.changes,
      find: () => pods.findInAnyAccount(id),
    });
  }

  /** What is at a path in it; it must run. */
  async statFile(caller: Caller, id: string, path: string): Promise<InstanceFile> {
    const pod = await this.get(caller, id);
    const found = await podFiles(pod, this.#deps.engines).stat(id, path);
    if (found === undefined) throw notFound('file', path);
    return found;
  }

  /** A tar of what is at a path in it. */
  async readFiles(caller: Caller, id: string, path: string): Promise<Readable> {
    const pod = await this.get(caller, id);
    return podFiles(pod, this.#deps.engines).read(id, path);
  }

  /** Unpacks a tar into a folder in it. */
  async writeFiles(caller: Caller, id: string, folder: string, tar: Readable): Promise<void> {
    const pod = await this.get(caller, id);
    await podFiles(pod, this.#deps.engines).write(id, folder, tar);
    await this.#context.store.audit.record(
      auditEntry(this.#context, caller, 'copy files into', RESOURCE, id, [{ field: 'path', to: folder }]),
    );
  }

  async #change(
    caller: Caller,
    id: string,
    action: string,
    next: (
      current: Pod,
      now: number,
      footing: PodReferences,
    ) => Pod | { record: Pod; interrupted: AuditedChange<Pod>[] },
    ids: PodReferenceIds = {},
  ): Promise<Pod> {
    checkPodCaller(caller, id);
    const { store, clock } = this.#context;
    const changed = await store.pods.change(caller.accountId, id, ids, (current, footing) => {
      const after = next(current, clock.now(), footing);
      const { record, interrupted } = 'record' in after ? after : { record: after, interrupted: [] };
      const changes = action === 'update' ? diffRecords(current, record, AUDIT_HIDDEN_FIELDS) : [];
      return { record, audit: auditEntry(this.#context, caller, action, RESOURCE, id, changes), interrupted };
    });
    if (changed === undefined) throw notFound(RESOURCE, id);
    this.#publishChange(id);
    return changed;
  }

  /** The pod when what was asked of it is done, or as far as it is when the time is over. */
  async waitUntilSettled(id: string): Promise<Pod | undefined> {
    const until = performance.now() + SETTLE_TIMEOUT_MS;
    for (;;) {
      const left = Math.max(0, until - performance.now());
      const { changed, leave } = this.#deps.changes.waitForNext(id, left);
      const pod = await this.#context.store.pods.findInAnyAccount(id);
      if (pod === undefined || pod.settled || left === 0) {
        leave();
        return pod;
      }
      await changed;
    }
  }

  #publishChange(podId: string): void {
    this.#context.events.publish('pod.changed', { podId, source: 'request' });
  }

  async #checkedHardware(wish: HardwareRequest): Promise<HardwareRequest> {
    const offer = await readCatalogSnapshot(this.#deps.catalog);
    const selection = normalizeGpuIds({
      gpuTypeIds: [...wish.gpuTypeIds],
      gpuPools: [],
      excludedGpuTypes: [],
    });
    const cpuFlavors = CPU_FLAVORS.filter(({ products }) => products.includes('POD'));
    throwFindings([
      ...(wish.compute === 'GPU'
        ? gpuFindings(selection, offer)
        : wish.cpuFlavors.length === 0
          ? []
          : cpuFindings(wish.cpuFlavors, { ...offer, cpuFlavors })),
      ...dataCenterFindings(wish.dataCenterIds, offer),
    ]);
    return { ...wish, gpuTypeIds: selection.gpuTypeIds };
  }

  /** A template's CUDA versions are a default; whatever is said about CUDA takes their place. */
  #cuda({ compute, cuda }: HardwareRequest, template: Template | undefined): HardwareRequest['cuda'] {
    const said = cuda.allowed !== undefined || typeof cuda.minimum === 'string';
    return said || template === undefined || compute === 'CPU'
      ? cuda
      : { allowed: template.allowedCudaVersions };
  }

  async #template(caller: Caller, use: PodTemplateUse | undefined): Promise<Template | undefined> {
    if (use === undefined) return undefined;
    const template = await this.#deps.templates.get(caller, use.id).catch((error: unknown) => {
      if (use.isRecorded && error instanceof BerthError && error.code === 'not-found')
        throw ruleError(
          `template ${JSON.stringify(use.id.slice(0, 64))} does not exist, or is not yours to use; create it first or name another`,
        );
      throw error;
    });
    if (!template.serverless) return template;
    const finding = `template ${JSON.stringify(template.name)} is for endpoints; a pod needs one that is not serverless`;
    throw use.isRecorded ? ruleError(finding) : schemaError([`$.templateId: ${finding}`]);
  }

  #withReferences({ registryId }: PodInput, pod: Pod): Pod {
    return registryId === undefined ? pod : { ...pod, registryId };
  }

  /** An engine that does not answer now has no room now. */
  async #sites(image: string): Promise<PodCandidate[]> {
    const names = new Map(this.#deps.catalog.dataCenters().map(({ id, engine }) => [id, engine]));
    const sites = await Promise.all(
      [...this.#deps.engines].map(async ([dataCenterId, engine]): Promise<PodCandidate[]> => {
        try {
          return [
            {
              dataCenterId,
              engine: names.get(dataCenterId) ?? engine.kind,
              capacity: await engine.capacity(),
              imageProblem: engine.imageProblem(image),
              ...(engine.capabilities.networks !== undefined && { network: engine.capabilities.networks }),
              ...(engine.subnetsInUse !== undefined && {
                subnetsInUse: () => engine.subnetsInUse?.() ?? Promise.resolve([]),
              }),
            },
          ];
        } catch (error) {
          if (error instanceof BerthError && error.code === 'unavailable') return [];
          throw error;
        }
      }),
    );
    return sites.flat();
  }
}

/** A member of a cluster came with the others, and goes with them. */
function refuseClusterMember(pod: Pod, done: string): Pod {
  if (pod.clusterId !== null)
    throw new BerthError(
      'state',
      `pod ${pod.id} belongs to the cluster ${pod.clusterId}, so it cannot be ${done} by itself; use the cluster`,
    );
  return pod;
}

/** A pod that acts by itself acts on itself. */
function checkPodCaller({ podId }: Caller, id: string): void {
  if (podId !== undefined && podId !== id) throw new BerthError('forbidden', POD_ACCESS_DENIED);
}

function registryOf({ registryId }: PodInput): { registryId?: string } {
  return typeof registryId === 'string' ? { registryId } : {};
}

function checkRegistry({ registryId }: PodInput, found: boolean): void {
  if (typeof registryId === 'string' && !found)
    throw ruleError(
      `registry ${JSON.stringify(registryId.slice(0, 64))} does not exist in this account; create it first or leave it out`,
    );
}

/** A GPU pod may be started without its GPUs, to get at its data. */
function gpuCountFindings({ compute }: Pod, gpuCount: number): string[] {
  if (!Number.isInteger(gpuCount) || gpuCount < 0)
    return [`gpuCount must be a whole number of at least 0, got ${gpuCount}`];
  return compute === 'CPU' && gpuCount > 0 ? ['this is a CPU pod, and that is fixed: it takes no GPUs'] : [];
}

function throwFindings(findings: string[]): void {
  if (findings.length > 0) throw new BerthError('rule', findings.join('; '), { details: findings });
}
