import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import type { AuditedPodChange, PodReferences, PodReferenceIds } from '../../store/pod-store.ts';
import type { AuditedAction } from '../../domain/audit.ts';
import type { PageRequest } from '../../domain/records.ts';
import type { ChangeNotifier } from '../../support/change-notifier.ts';
import { BerthError, notFound, ruleError } from '../../support/errors.ts';
import { POD_ACCESS_DENIED, SYSTEM_CALLER, type Caller } from '../../domain/caller.ts';
import { auditEntry, diffRecords, withinQuotas, type ResourceContext } from '../resource-context.ts';
import { podHourlyCost, bidFindings } from '../../domain/hourly-cost.ts';
import { withoutInterruptible, placeOrInterrupt } from '../../domain/placement/pod-interruption.ts';
import {
  requestNewInstance,
  requestRestart,
  requestStart,
  requestStop,
  requestTermination,
  stopWithAccount,
  terminateWithCluster,
} from '../../domain/pods/pod-transitions.ts';
import { CheckedPod } from './checked-pod.ts';
import { PodFiles } from './pod-files.ts';
import { podLog } from './pod-log.ts';
import { applyTemplate } from '../../domain/pods/pod-input.ts';
import type { NewPod, PodInput } from '../../domain/pods/pod-input.ts';
import { placeExistingPod, placePod } from '../../domain/placement/pod-placement.ts';
import {
  gpuCountFindings,
  needsNewInstance,
  podChangeFindings,
  podFindings,
} from '../../domain/pods/pod-rules.ts';
import { PodRuntimeReader, type PodPort, type PodRuntime } from './pod-runtime.ts';
import { checkAction, lockedError, refuseClusterMember } from '../../domain/pods/pod-states.ts';
import { workerAsPod } from './worker-as-pod.ts';
import type { WorkerPod } from './worker-as-pod.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';
import type { AuditedChange } from '../../store/collection.ts';
import { checkRegistry, PodPreparation, registryOf, throwFindings, withRegistry } from './pod-preparation.ts';
import type { PodPreparationDeps, PreparedPod } from './pod-preparation.ts';

const RESOURCE = 'pod';
/** Values of environment variables may be secrets, so the audit log does not show them. */
const AUDIT_HIDDEN_FIELDS: (keyof Pod)[] = ['env'];
/** How long a request to stop or terminate a pod waits for the result. Clients time out after ten seconds. */
const SETTLE_TIMEOUT_MS = 8_000;

export interface PodsDeps extends PodPreparationDeps {
  changes: ChangeNotifier;
  /** The password of Jupyter in a pod. */
  jupyterPassword(podId: string): string;
}

/** Options for starting a stopped pod. */
export interface StartPodOptions {
  gpuCount?: number;
  bidPerGpu?: number;
}

export class Pods {
  /** The files in running pods. */
  readonly files: PodFiles;
  readonly #context: ResourceContext;
  readonly #deps: PodsDeps;
  readonly #preparation: PodPreparation;
  readonly #runtimes: PodRuntimeReader;

  constructor(context: ResourceContext, deps: PodsDeps) {
    this.#context = context;
    this.#deps = deps;
    this.#preparation = new PodPreparation(context, deps);
    this.#runtimes = new PodRuntimeReader(deps.engines, context.clock);
    this.files = new PodFiles(context, deps.engines, (caller, id) => this.get(caller, id));
  }

  async create(caller: Caller, input: NewPod): Promise<Pod> {
    const { created, interrupted } = await this.#insert(caller, input, (change) => change);
    for (const pod of [...interrupted, created]) this.#publishChange(pod.id);
    return created;
  }

  /**
   * Does all that a creation does and rolls it back: what would be created and which pods would be
   * interrupted for it. Throws what a creation would throw.
   */
  async check(caller: Caller, input: NewPod): Promise<{ pod: Pod; interrupted: readonly Pod[] }> {
    try {
      await this.#insert(caller, input, ({ record, interrupted = [] }) => {
        throw new CheckedPod(
          record,
          interrupted.map((change) => change.record),
        );
      });
    } catch (error) {
      if (error instanceof CheckedPod) return error;
      throw error;
    }
    throw new Error('a check of a pod was not rolled back');
  }

  async #insert(
    caller: Caller,
    input: NewPod,
    confirm: (change: AuditedPodChange) => AuditedPodChange,
  ): Promise<{ created: Pod; interrupted: readonly Pod[] }> {
    const { store, ids, clock } = this.#context;
    const id = ids.resource();
    const { hardware, interruptible, candidates, referenceIds, checkReferences, build } =
      await this.#preparation.prepare(caller, input, id);
    let interruptedPods: Pod[] = [];
    const needs = {
      pods: 1,
      gpus: hardware.compute === 'GPU' ? hardware.gpuCount : 0,
      logBytes: 1,
      spendPerMonth: 0,
    };
    const insert = (): Promise<Pod> =>
      store.pods.insert(caller.accountId, referenceIds, (found) => {
        const { volume } = checkReferences(found);
        const { placement, interrupted } = placeOrInterrupt(
          (at, held) => placePod(hardware, volume, at, held),
          candidates,
          interruptible ? withoutInterruptible(found) : found,
          clock.now(),
        );
        interruptedPods = interrupted;
        return confirm({
          record: build(id, placement, volume),
          audit: auditEntry(this.#context, caller, 'create', RESOURCE, id),
          interrupted: this.auditInterruptions(interrupted),
        });
      });
    const created = await withinQuotas(this.#context, caller.accountId, needs, insert);
    return { created, interrupted: interruptedPods };
  }

  /** Checks a request for pods that are stored by other code. */
  prepare(caller: Caller, input: NewPod): Promise<PreparedPod> {
    return this.#preparation.prepare(caller, input);
  }

  /**
   * Audit entries for pods that are interrupted to make room. The actor is the system, since no user requested
   * for it.
   */
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

  /** Called when the desired state of a pod was changed by other code. */
  notifyChanged(id: string): void {
    this.#publishChange(id);
  }

  /**
   * Changes only the given fields. A running pod gets a new instance if a changed field is fixed when an
   * instance is created.
   */
  async update(caller: Caller, id: string, change: PodInput): Promise<Pod> {
    const template = await this.#preparation.template(caller, change.template);
    const changed = await this.#change(
      caller,
      id,
      'update',
      (current, now, { registryFound }) => {
        checkRegistry(change, registryFound);
        refuseClusterMember(current, 'changed');
        const base = template === undefined ? current : applyTemplate(current, template);
        const edited = withRegistry(change, { ...base, ...change.settings(base), updatedAt: now });
        throwFindings([...podFindings(edited), ...podChangeFindings(current, edited)]);
        if (current.wanted !== 'running' || !needsNewInstance(current, edited)) return edited;
        if (current.locked && edited.locked) throw lockedError(id, 'be changed in a way that resets it');
        return requestNewInstance(edited, now, 'Restarting after a change');
      },
      registryOf(change),
    );
    return changed;
  }

  async start(caller: Caller, id: string, request: StartPodOptions = {}): Promise<Pod> {
    const present = await this.get(caller, id);
    const candidates = await this.#preparation.candidates(present.accountId, present.image);
    let interruptedPods: Pod[] = [];
    const needs = { gpus: request.gpuCount ?? present.gpuCount, logBytes: 1, spendPerMonth: 0 };
    const start = (): Promise<Pod> =>
      this.#change(
        caller,
        id,
        'start',
        (current, now, references) => {
          const gpuCount = request.gpuCount ?? current.gpuCount;
          const { bidPerGpu } = request;
          if (bidPerGpu !== undefined && !current.interruptible)
            throw ruleError(`pod ${id} is not interruptible, so it has no bid; resume it without one`);
          const requested: Pod = bidPerGpu === undefined ? current : { ...current, bidPerGpu };
          throwFindings([
            ...podFindings(requested),
            ...gpuCountFindings(current, gpuCount),
            ...bidFindings(
              this.#deps.prices,
              current.gpuTypeId === null ? [] : [current.gpuTypeId],
              requested,
            ),
          ]);
          // Check the state before the hardware: for a pod that already runs, "no capacity" would be the
          // wrong error.
          checkAction(current, 'start');
          const { placement, interrupted } = placeOrInterrupt(
            (at, taken) => placeExistingPod(requested, gpuCount, at, taken),
            candidates,
            requested.interruptible ? withoutInterruptible(references) : references,
            now,
          );
          interruptedPods = interrupted;
          return {
            record: requestStart(
              requested,
              placement,
              podHourlyCost(this.#deps.prices, { ...requested, ...placement }),
              now,
            ),
            interrupted: this.auditInterruptions(interrupted),
          };
        },
        { needsPlacement: true },
      );
    // A pod that runs already is refused for that reason.
    const changed = await (present.wanted === 'running'
      ? start()
      : withinQuotas(this.#context, caller.accountId, needs, start));
    for (const pod of interruptedPods) this.#publishChange(pod.id);
    return changed;
  }

  async stop(caller: Caller, id: string): Promise<Pod> {
    const requested = await this.#change(caller, id, 'stop', (current, now) => requestStop(current, now));
    return (await this.waitUntilSettled(id)) ?? requested;
  }

  restart(caller: Caller, id: string): Promise<Pod> {
    return this.#change(caller, id, 'restart', (current, now) => requestRestart(current, 'restart', now));
  }

  /** Creates a new container from the image; data on volumes stays. */
  reset(caller: Caller, id: string): Promise<Pod> {
    return this.#change(caller, id, 'reset', (current, now) => requestRestart(current, 'reset', now));
  }

  /** Also deletes its container and its volume disk. */
  async terminate(caller: Caller, id: string): Promise<void> {
    await this.#change(caller, id, 'delete', (current, now) =>
      requestTermination(refuseClusterMember(current, 'terminated'), now),
    );
    await this.waitUntilSettled(id);
  }

  /** Stops or terminates every pod of an account, also locked ones: an operator disabled or deleted it. */
  async endAll(accountId: string, action: 'stop' | 'terminate'): Promise<void> {
    const { store, clock } = this.#context;
    const end = action === 'stop' ? stopWithAccount : terminateWithCluster;
    const owner = { ...SYSTEM_CALLER, accountId };
    const ids = (await store.pods.list(accountId)).map(({ id }) => id);
    for (const id of ids) {
      await store.pods.change(accountId, id, {}, (current) => ({
        record: end(current, clock.now()),
        audit: auditEntry(this.#context, owner, action === 'stop' ? 'stop' : 'delete', RESOURCE, id),
      }));
      this.#publishChange(id);
    }
    await Promise.all(ids.map((id) => this.waitUntilSettled(id)));
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

  /** Workers in the form of pods: the older interfaces list them among the pods. */
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

  /** Usage and ports at this moment; null unless the pod runs. */
  runtime(pod: Pod): Promise<PodRuntime | null> {
    return this.#runtimes.read(pod);
  }

  /** Whether the engine enforces the size of the container disk. */
  async limitsContainerDisk({ dataCenterId }: Pod): Promise<boolean> {
    try {
      return (await this.#deps.engines.get(dataCenterId)?.limitsContainerDisk?.()) ?? false;
    } catch (error) {
      if (error instanceof BerthError && error.code === 'unavailable') return false;
      throw error;
    }
  }

  /** The password of Jupyter in this pod. */
  jupyterPassword(podId: string): string {
    return this.#deps.jupyterPassword(podId);
  }

  ports(pod: Pod): Promise<PodPort[]> {
    return this.#runtimes.ports(pod);
  }

  /**
   * The log of a pod since its first start. Also works for a terminated pod, as long as its log is retained.
   */
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

  async #change(
    caller: Caller,
    id: string,
    action: AuditedAction,
    next: (
      current: Pod,
      now: number,
      references: PodReferences,
    ) => Pod | { record: Pod; interrupted: AuditedChange<Pod>[] },
    ids: PodReferenceIds = {},
  ): Promise<Pod> {
    checkPodCaller(caller, id);
    const { store, clock } = this.#context;
    const changed = await store.pods.change(caller.accountId, id, ids, (current, references) => {
      const after = next(current, clock.now(), references);
      const { record, interrupted } = 'record' in after ? after : { record: after, interrupted: [] };
      const changes = action === 'update' ? diffRecords(current, record, AUDIT_HIDDEN_FIELDS) : [];
      return { record, audit: auditEntry(this.#context, caller, action, RESOURCE, id, changes), interrupted };
    });
    if (changed === undefined) throw notFound(RESOURCE, id);
    this.#publishChange(id);
    return changed;
  }

  /** Waits until the requested change is done, or until the timeout, and returns the pod as it is then. */
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
}

/** A pod that calls the API with its own token may only act on itself. */
function checkPodCaller({ podId }: Caller, id: string): void {
  if (podId !== undefined && podId !== id) throw new BerthError('forbidden', POD_ACCESS_DENIED);
}
