import type { Readable } from 'node:stream';
import type { InstanceEngine } from '../../engines/engine.ts';
import type { InstanceFile } from '../../engines/files.ts';
import type { LogLine, LogQuery } from '../../engines/logs/log-line.ts';
import type { Pod, PodFooting, PodFootingIds } from '../../store/pods.ts';
import type { NetworkVolume, Page, Template } from '../../store/records.ts';
import type { Changed } from '../../store/store.ts';
import type { Changes } from '../../support/changes.ts';
import { BerthError, notFound, rule } from '../../support/errors.ts';
import type { Caller } from '../caller.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { CPU_FLAVORS } from '../catalog/cpu-flavors.ts';
import type { PriceSettings } from '../catalog/prices.ts';
import { auditOf, changesBetween } from '../context.ts';
import type { Context } from '../context.ts';
import { cpuFindings } from '../endpoints/cpu-selection.ts';
import { gpuFindings, withKnownSpellings } from '../endpoints/gpu-selection.ts';
import { offerOf } from '../endpoints/offer.ts';
import { dataCenterFindings } from '../endpoints/placement.ts';
import { POD_REFUSAL } from '../keys/gate.ts';
import type { Templates } from '../templates/templates.ts';
import { hourlyCost, lowestBidFindings } from './cost.ts';
import { interruptingNone, placeOrInterrupt } from './interruption.ts';
import { renewed, restarted, started, stopped, terminated } from './lifecycle.ts';
import { filesOf } from './files.ts';
import { podLog } from './log.ts';
import { appliedTemplate, DEFAULTS, fromTemplate } from './order.ts';
import type { NewPod, PodChange, PodTemplateUse } from './order.ts';
import { placeAgain, placePod } from './placement.ts';
import type { HardwareWish, PodPlace, PodSite } from './placement.ts';
import { changeFindings, needsNewInstance, podFindings, wishFindings } from './rules.ts';
import { PodRuntimes } from './runtime.ts';
import type { PodPort, PodRuntime } from './runtime.ts';
import { checkAction, locked } from './states.ts';
import { podOfWorker } from './worker-pods.ts';
import type { WorkerPod } from './worker-pods.ts';

const KIND = 'pod';
/** Values of the environment are nobody's business but the container's; what the keeper writes down is no change of a person's. */
const HIDDEN: (keyof Pod)[] = ['env'];
/** How long whoever stops or terminates a pod waits to see it done. Clients give up after ten seconds. */
const SEE_IT_DONE_MS = 8_000;

export interface PodParts {
  catalog: Catalog;
  templates: Templates;
  prices: PriceSettings;
  /** By data center. */
  engines: ReadonlyMap<string, InstanceEngine>;
  changes: Changes;
  /** The password that Jupyter has in a pod. */
  jupyterPassword(podId: string): string;
  /** Something else is wanted of a pod now. */
  onChanged(podId: string): void;
}

/** An order that has been checked, and needs a place. */
export interface PreparedPod {
  interruptible: boolean;
  hardware: HardwareWish;
  sites: PodSite[];
  footing: PodFootingIds;
  /** Refuses where something that it refers to is not there. */
  check(footing: PodFooting): { volume: NetworkVolume | undefined };
  make(id: string, place: PodPlace, volume: NetworkVolume | undefined): Pod;
}

/** How a pod is started again. */
export interface StartWish {
  gpuCount?: number;
  bidPerGpu?: number;
}

export class Pods {
  readonly #context: Context;
  readonly #parts: PodParts;
  readonly #runtimes: PodRuntimes;

  constructor(context: Context, parts: PodParts) {
    this.#context = context;
    this.#parts = parts;
    this.#runtimes = new PodRuntimes(parts.engines, context.clock);
  }

  async create(caller: Caller, order: NewPod): Promise<Pod> {
    const { store, ids, clock } = this.#context;
    const id = ids.resource();
    const { hardware, interruptible, sites, footing, check, make } = await this.prepare(caller, order, id);
    let going: Pod[] = [];
    const created = await store.pods.insert(caller.accountId, footing, (found) => {
      const { volume } = check(found);
      const { place, interrupted } = placeOrInterrupt(
        (at, held) => placePod(hardware, volume, at, held),
        sites,
        interruptible ? interruptingNone(found) : found,
        clock.now(),
      );
      going = interrupted;
      return {
        record: make(id, place, volume),
        audit: auditOf(this.#context, caller, 'create', KIND, id),
        interrupted: this.interruptions(interrupted),
      };
    });
    for (const pod of [...going, created]) this.#parts.onChanged(pod.id);
    return created;
  }

  /** Checks an order as far as that is possible before it has a place. `id` is that of the pod, or of an example where several are made. */
  async prepare(caller: Caller, order: NewPod, id = this.#context.ids.resource()): Promise<PreparedPod> {
    const now = this.#context.clock.now();
    const hardware = await this.#checkedHardware(order.hardware);
    const template = await this.#template(caller, order.template);
    const wantedAs = (podId: string): Pod => {
      const blank: Pod = {
        ...DEFAULTS,
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
        ...(template && fromTemplate(template, caller.accountId, hardware.compute)),
        ...(order.networkVolumeId !== undefined && { volumeSize: 0 }),
      };
      return this.#withReferences(order, {
        ...base,
        ...order.settings(base),
        templateId: order.template?.remembered === true ? order.template.id : null,
        networkVolumeId: order.networkVolumeId ?? null,
      });
    };
    const wanted = wantedAs(id);
    refuse([
      ...podFindings(wanted),
      ...wishFindings(hardware),
      ...lowestBidFindings(this.#parts.prices, hardware.gpuTypeIds, wanted),
    ]);
    return {
      interruptible: wanted.interruptible,
      hardware: { ...hardware, cuda: this.#cuda(hardware, template) },
      sites: await this.#sites(wanted.image),
      footing: {
        ...registryOf(order),
        ...(order.networkVolumeId !== undefined && { volumeId: order.networkVolumeId }),
        placing: true,
      },
      check: ({ registryFound, volume }) => {
        checkRegistry(order, registryFound);
        if (order.networkVolumeId !== undefined && volume === undefined)
          throw rule(
            `network volume ${JSON.stringify(order.networkVolumeId.slice(0, 64))} does not exist in this account; create it first or leave it out`,
          );
        return { volume };
      },
      make: (podId, place, volume) => {
        // A network volume is there in the secure cloud alone.
        const record: Pod = {
          ...wantedAs(podId),
          ...place,
          ...(volume !== undefined && { cloud: 'SECURE' }),
        };
        return { ...record, costPerHour: hourlyCost(this.#parts.prices, record) };
      },
    };
  }

  /** The entries of those who have to make room: nobody asked for that by name. */
  interruptions(interrupted: readonly Pod[]): Changed<Pod>[] {
    return interrupted.map((record) => ({
      record,
      audit: {
        at: this.#context.clock.now(),
        accountId: record.accountId,
        keyId: null,
        interface: 'system',
        requestId: '',
        action: 'interrupt',
        resource: KIND,
        resourceId: record.id,
        changes: [],
      },
    }));
  }

  /** Something else is wanted of a pod, which was written elsewhere. */
  changed(id: string): void {
    this.#parts.onChanged(id);
  }

  /** Only what is said changes. A running pod gets a new instance where that is built into the old one. */
  async update(caller: Caller, id: string, change: PodChange): Promise<Pod> {
    const template = await this.#template(caller, change.template);
    const changed = await this.#change(
      caller,
      id,
      'update',
      (current, now, { registryFound }) => {
        checkRegistry(change, registryFound);
        alone(current, 'changed');
        const base = template === undefined ? current : appliedTemplate(current, template);
        const edited = this.#withReferences(change, { ...base, ...change.settings(base), updatedAt: now });
        refuse([...podFindings(edited), ...changeFindings(current, edited)]);
        if (current.wanted !== 'running' || !needsNewInstance(current, edited)) return edited;
        if (current.locked && edited.locked) throw locked(id, 'be changed in a way that resets it');
        return renewed(edited, now, 'Restarting after a change');
      },
      registryOf(change),
    );
    return changed;
  }

  async start(caller: Caller, id: string, wish: StartWish = {}): Promise<Pod> {
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
          throw rule(`pod ${id} is not interruptible, so it has no bid; resume it without one`);
        const asked: Pod = bidPerGpu === undefined ? current : { ...current, bidPerGpu };
        refuse([
          ...podFindings(asked),
          ...gpuCountFindings(current, gpuCount),
          ...lowestBidFindings(
            this.#parts.prices,
            current.gpuTypeId === null ? [] : [current.gpuTypeId],
            asked,
          ),
        ]);
        // The state is told before the hardware: a pod that runs needs no room to start.
        checkAction(current, 'start');
        const { place, interrupted } = placeOrInterrupt(
          (at, taken) => placeAgain(asked, gpuCount, at, taken),
          sites,
          asked.interruptible ? interruptingNone(footing) : footing,
          now,
        );
        going = interrupted;
        return {
          record: started(asked, place, hourlyCost(this.#parts.prices, { ...asked, ...place }), now),
          interrupted: this.interruptions(interrupted),
        };
      },
      { placing: true },
    );
    for (const pod of going) this.#parts.onChanged(pod.id);
    return changed;
  }

  async stop(caller: Caller, id: string): Promise<Pod> {
    const asked = await this.#change(caller, id, 'stop', (current, now) => stopped(current, now));
    return (await this.seenDone(id)) ?? asked;
  }

  restart(caller: Caller, id: string): Promise<Pod> {
    return this.#change(caller, id, 'restart', (current, now) => restarted(current, 'restart', now));
  }

  /** A fresh container from the image; what is on volumes stays. */
  reset(caller: Caller, id: string): Promise<Pod> {
    return this.#change(caller, id, 'reset', (current, now) => restarted(current, 'reset', now));
  }

  /** With it go its container and its volume disk. */
  async terminate(caller: Caller, id: string): Promise<void> {
    await this.#change(caller, id, 'delete', (current, now) => terminated(alone(current, 'terminated'), now));
    await this.seenDone(id);
  }

  async get(caller: Caller, id: string): Promise<Pod> {
    checkItself(caller, id);
    const found = await this.#context.store.pods.find(caller.accountId, id);
    if (found === undefined) throw notFound(KIND, id);
    return found;
  }

  list(caller: Caller, page?: Page): Promise<Pod[]> {
    return this.#context.store.pods.list(caller.accountId, page);
  }

  /** Workers, as the older interfaces show them among the pods. */
  async workers(caller: Caller, endpointId?: string): Promise<WorkerPod[]> {
    const { store } = this.#context;
    const [endpoints, workers] = await Promise.all([
      store.endpoints.list(caller.accountId),
      store.fleet.livingWorkers(endpointId),
    ]);
    const known = new Map(endpoints.map((endpoint) => [endpoint.id, endpoint]));
    return workers.flatMap((worker) => {
      const endpoint = worker.accountId === caller.accountId ? known.get(worker.endpointId) : undefined;
      return endpoint === undefined ? [] : [podOfWorker(worker, endpoint, this.#parts.prices)];
    });
  }

  /** How it is at this moment; null unless it runs. */
  runtime(pod: Pod): Promise<PodRuntime | null> {
    return this.#runtimes.of(pod);
  }

  /** Whether the size of its container disk is a limit, or only a number: not every engine can keep it. */
  async limitsContainerDisk({ dataCenterId }: Pod): Promise<boolean> {
    try {
      return (await this.#parts.engines.get(dataCenterId)?.limitsContainerDisk?.()) ?? false;
    } catch (error) {
      if (error instanceof BerthError && error.code === 'unavailable') return false;
      throw error;
    }
  }

  /** What Jupyter asks for in this pod. */
  jupyterPassword(podId: string): string {
    return this.#parts.jupyterPassword(podId);
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
    checkItself(caller, id);
    const { pods } = this.#context.store;
    const pod = await pods.findAnywhere(id);
    if (pod === undefined || pod.accountId !== caller.accountId) throw notFound(KIND, id);
    return podLog({
      pod,
      query,
      signal,
      engine: this.#parts.engines.get(pod.dataCenterId),
      changes: this.#parts.changes,
      find: () => pods.findAnywhere(id),
    });
  }

  /** What is at a path in it; it must run. */
  async file(caller: Caller, id: string, path: string): Promise<InstanceFile> {
    const pod = await this.get(caller, id);
    const found = await filesOf(pod, this.#parts.engines).look(id, path);
    if (found === undefined) throw notFound('file', path);
    return found;
  }

  /** A tar of what is at a path in it. */
  async readFiles(caller: Caller, id: string, path: string): Promise<Readable> {
    const pod = await this.get(caller, id);
    return filesOf(pod, this.#parts.engines).read(id, path);
  }

  /** Unpacks a tar into a folder in it. */
  async writeFiles(caller: Caller, id: string, folder: string, tar: Readable): Promise<void> {
    const pod = await this.get(caller, id);
    await filesOf(pod, this.#parts.engines).write(id, folder, tar);
    await this.#context.store.audit.record(
      auditOf(this.#context, caller, 'copy files into', KIND, id, [{ field: 'path', to: folder }]),
    );
  }

  async #change(
    caller: Caller,
    id: string,
    action: string,
    next: (
      current: Pod,
      now: number,
      footing: PodFooting,
    ) => Pod | { record: Pod; interrupted: Changed<Pod>[] },
    ids: { registryId?: string; placing?: true } = {},
  ): Promise<Pod> {
    checkItself(caller, id);
    const { store, clock } = this.#context;
    const changed = await store.pods.change(caller.accountId, id, ids, (current, footing) => {
      const after = next(current, clock.now(), footing);
      const { record, interrupted } = 'record' in after ? after : { record: after, interrupted: [] };
      const changes = action === 'update' ? changesBetween(current, record, HIDDEN) : [];
      return { record, audit: auditOf(this.#context, caller, action, KIND, id, changes), interrupted };
    });
    if (changed === undefined) throw notFound(KIND, id);
    this.#parts.onChanged(id);
    return changed;
  }

  /** The pod when what was asked of it is done, or as far as it is when the time is over. */
  async seenDone(id: string): Promise<Pod | undefined> {
    const until = performance.now() + SEE_IT_DONE_MS;
    for (;;) {
      const left = Math.max(0, until - performance.now());
      const { changed, leave } = this.#parts.changes.next(id, left);
      const pod = await this.#context.store.pods.findAnywhere(id);
      if (pod === undefined || pod.settled || left === 0) {
        leave();
        return pod;
      }
      await changed;
    }
  }

  async #checkedHardware(wish: HardwareWish): Promise<HardwareWish> {
    const offer = await offerOf(this.#parts.catalog);
    const selection = withKnownSpellings({
      gpuTypeIds: [...wish.gpuTypeIds],
      gpuPools: [],
      excludedGpuTypes: [],
    });
    const cpuFlavors = CPU_FLAVORS.filter(({ products }) => products.includes('POD'));
    refuse([
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
  #cuda({ compute, cuda }: HardwareWish, template: Template | undefined): HardwareWish['cuda'] {
    const said = cuda.allowed !== undefined || typeof cuda.minimum === 'string';
    return said || template === undefined || compute === 'CPU'
      ? cuda
      : { allowed: template.allowedCudaVersions };
  }

  async #template(caller: Caller, use: PodTemplateUse | undefined): Promise<Template | undefined> {
    if (use === undefined) return undefined;
    const template = await this.#parts.templates.get(caller, use.id).catch((error: unknown) => {
      if (use.remembered && error instanceof BerthError && error.code === 'not-found')
        throw rule(
          `template ${JSON.stringify(use.id.slice(0, 64))} does not exist, or is not yours to use; create it first or name another`,
        );
      throw error;
    });
    if (!template.serverless) return template;
    const finding = `template ${JSON.stringify(template.name)} is for endpoints; a pod needs one that is not serverless`;
    throw use.remembered
      ? rule(finding)
      : new BerthError('schema', 'Request validation failed.', { details: [`$.templateId: ${finding}`] });
  }

  #withReferences({ registryId }: PodChange, pod: Pod): Pod {
    return registryId === undefined ? pod : { ...pod, registryId };
  }

  /** An engine that does not answer now has no room now. */
  async #sites(image: string): Promise<PodSite[]> {
    const names = new Map(this.#parts.catalog.dataCenters().map(({ id, engine }) => [id, engine]));
    const sites = await Promise.all(
      [...this.#parts.engines].map(async ([dataCenterId, engine]): Promise<PodSite[]> => {
        try {
          return [
            {
              dataCenterId,
              engine: names.get(dataCenterId) ?? engine.kind,
              capacity: await engine.capacity(),
              imageProblem: engine.imageProblem(image),
              ...(engine.abilities.networks !== undefined && { network: engine.abilities.networks }),
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
function alone(pod: Pod, done: string): Pod {
  if (pod.clusterId !== null)
    throw new BerthError(
      'state',
      `pod ${pod.id} belongs to the cluster ${pod.clusterId}, so it cannot be ${done} by itself; use the cluster`,
    );
  return pod;
}

/** A pod that acts by itself acts on itself. */
function checkItself({ podId }: Caller, id: string): void {
  if (podId !== undefined && podId !== id) throw new BerthError('forbidden', POD_REFUSAL);
}

function registryOf({ registryId }: PodChange): { registryId?: string } {
  return typeof registryId === 'string' ? { registryId } : {};
}

function checkRegistry({ registryId }: PodChange, found: boolean): void {
  if (typeof registryId === 'string' && !found)
    throw rule(
      `registry ${JSON.stringify(registryId.slice(0, 64))} does not exist in this account; create it first or leave it out`,
    );
}

/** A GPU pod may be started without its GPUs, to get at its data. */
function gpuCountFindings({ compute }: Pod, gpuCount: number): string[] {
  if (!Number.isInteger(gpuCount) || gpuCount < 0)
    return [`gpuCount must be a whole number of at least 0, got ${gpuCount}`];
  return compute === 'CPU' && gpuCount > 0 ? ['this is a CPU pod, and that is fixed: it takes no GPUs'] : [];
}

function refuse(findings: string[]): void {
  if (findings.length > 0) throw new BerthError('rule', findings.join('; '), { details: findings });
}
