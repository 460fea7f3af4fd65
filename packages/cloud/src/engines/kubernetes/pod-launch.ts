import { setTimeout as pause } from 'node:timers/promises';
import { BerthError, ruleError } from '../../support/errors.ts';
import type { StartContext } from '../container-engine.ts';
import type { InstanceSpec } from '../instance.ts';
import { notAcceleratedLine } from '../python-hook.ts';
import type { KubernetesClient } from './client/kubernetes-client.ts';
import { isConflict, isTransient, toKubernetesError } from './client/kubernetes.errors.ts';
import { joinClusterService } from './cluster-service.ts';
import { productName, productsOf } from './gpu-nodes.ts';
import { discardPod, readPod } from './kubernetes-instance.ts';
import type { NodeObject, PodObject } from './kubernetes-objects.ts';
import type { ClusterSettings } from './kubernetes-options.ts';
import type { PodEvents } from './pod-events.ts';
import { INSTALLATION, labelValue } from './pod-labels.ts';
import { type InstanceManifests, instanceManifests } from './pod-manifest.ts';
import { adoptSecrets, createSecrets, deleteSecrets } from './pod-secrets.ts';
import type { PodWaits } from './pod-waits.ts';
import { podState } from './pod-state.ts';

/** Slow starts are explained: the pod and its events are asked for, more and more seldom: there may be thousands. */
const FIRST_EVENTS_MS = 2000;
const EVENTS_GROWTH = 1.5;
const LONGEST_EVENTS_PAUSE_MS = 30_000;
const MAX_CREATE_TRIES = 20;
const DELETION_POLL_MS = 250;
/** A pull that failed is tried again by the kubelet; some failures are only of the moment. */
const PULL_PATIENCE_MS = 60_000;
/** How long a start waits for an API server that does not answer. */
const AWAY_PATIENCE_MS = 120_000;
const AWAY_RETRY_MS = 500;

export interface PodLaunchDeps extends Omit<StartContext, 'log'> {
  client: KubernetesClient;
  settings: ClusterSettings;
  installation: string;
  dataCenterId: string;
  waits: PodWaits;
  events: Pick<PodEvents, 'of'>;
  /** Called with failures that no start waits for. */
  onProblem: (what: string, error: unknown) => void;
  nodes: () => Promise<readonly NodeObject[]>;
  /** Creates what the pod needs beside itself: claims and policies. Returns claims by mount path. */
  prepare: (spec: InstanceSpec) => Promise<ReadonlyMap<string, string>>;
}

/** Starts a pod from its spec. If a step fails, what was created is deleted. */
export async function launchPod(spec: InstanceSpec, deps: PodLaunchDeps): Promise<PodObject> {
  const { client, settings, signal } = deps;
  checkMounts(spec, settings);
  if (spec.pythonHook !== undefined)
    await deps.reportProgress(notAcceleratedLine('its data center runs on Kubernetes'));
  const patiently = patience(deps);
  const { gpus } = spec;
  const gpuProducts = gpus === null ? [] : await patiently(() => findProducts(gpus.typeId, deps));
  const claims = await patiently(() => deps.prepare(spec));
  const manifests = instanceManifests(spec, { ...deps, gpuProducts, claims });
  signal.throwIfAborted();
  await deps.removePrevious();
  await deps.reportProgress(`Starting ${spec.image}.`);
  const path = `/api/v1/namespaces/${settings.namespace}/pods/${manifests.name}`;
  let created: PodObject | undefined;
  try {
    await patiently(() => createSecrets(manifests, deps));
    const made = await patiently(() => createPod(manifests, path, deps));
    created = made;
    await patiently(() => adoptSecrets(manifests, made, deps));
    const { network } = spec;
    if (network !== undefined) await patiently(() => joinClusterService(network, made, deps));
    const explained = new StartExplanation(spec, deps);
    const pod = await waitUntilRunning(spec, made, path, patiently, { ...deps, explained }).finally(() =>
      explained.end(),
    );
    spec.onImageReady?.();
    return pod;
  } catch (error) {
    // Its secrets go with it.
    if (created !== undefined)
      await discardPod(client, path, await readPod(client, path, created.metadata.uid));
    else await deleteSecrets(manifests, deps);
    throw signal.aborted ? signal.reason : toKubernetesError(error);
  }
}

type Patiently = <T>(ask: () => Promise<T>) => Promise<T>;

/**
 * A start that is under way waits for an API server that is away for a while: if it failed instead, it would
 * count as a crash. Every step can be repeated.
 */
function patience({ signal, reportProgress }: Pick<PodLaunchDeps, 'signal' | 'reportProgress'>): Patiently {
  let hasReported = false;
  return async (ask) => {
    const until = performance.now() + AWAY_PATIENCE_MS;
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (signal.aborted || !isTransient(error) || performance.now() > until) throw error;
        if (!hasReported) await reportProgress(`${toKubernetesError(error).message}; trying again.`);
        hasReported = true;
      }
      await pause(AWAY_RETRY_MS, undefined, { signal });
    }
  };
}

function checkMounts({ mounts }: InstanceSpec, { sharedFolders }: ClusterSettings): void {
  const unknown = mounts.find(({ volume }) => volume === undefined);
  if (unknown !== undefined && !sharedFolders)
    throw ruleError(
      `${unknown.path} is a folder of the Berth server, which pods on Kubernetes do not see; a data ` +
        'center with sharedFolders mounts folders that all its nodes have',
    );
}

async function findProducts(typeId: string, { nodes, settings }: PodLaunchDeps): Promise<string[]> {
  const products = productsOf(typeId, await nodes(), settings.gpuLabel);
  // A node pool that scales from zero has no node to ask.
  return products.length > 0 ? products : [productName(typeId)];
}

/** A name that is taken is our own earlier create, or a pod that is being deleted. */
export async function createPod(
  manifests: Pick<InstanceManifests, 'name' | 'pod'>,
  path: string,
  deps: Pick<PodLaunchDeps, 'client' | 'settings' | 'signal' | 'installation'>,
): Promise<PodObject> {
  const { client, settings, signal, installation } = deps;
  for (let tries = 1; ; tries += 1) {
    try {
      return await client.create<PodObject>(
        `/api/v1/namespaces/${settings.namespace}/pods`,
        manifests.pod,
        signal,
      );
    } catch (error) {
      if (!isConflict(error) || tries === MAX_CREATE_TRIES) throw error;
    }
    const existing = await readPod(client, path);
    if (existing === undefined) continue;
    if (existing.metadata.labels?.[INSTALLATION] !== labelValue(installation))
      throw new BerthError('unavailable', `the pod ${manifests.name} of the cluster is not Berth's`);
    if (existing.metadata.deletionTimestamp === undefined && podState(existing).status === 'starting')
      return existing;
    await discardPod(client, path, existing);
    await pause(DELETION_POLL_MS, undefined, { signal });
  }
}

/** Resolves when its container has started, also if it has ended since. */
async function waitUntilRunning(
  spec: InstanceSpec,
  created: PodObject,
  path: string,
  patiently: Patiently,
  deps: PodLaunchDeps & { explained: StartExplanation },
): Promise<PodObject> {
  const { settings, signal, waits, client, explained } = deps;
  const since = performance.now();
  let pullFailedAt: number | undefined;
  let eventsPauseMs = FIRST_EVENTS_MS;
  for (let pod: PodObject | undefined = created; ; ) {
    if (pod === undefined)
      throw new BerthError('unavailable', `the pod of ${spec.id} was deleted while it started`);
    const state = podState(pod);
    const reason = state.reasons[0];
    if (
      state.status === 'running' ||
      (state.status === 'exited' && !state.neverRan && state.startedAt !== null && hasRun(pod))
    )
      return pod;
    // Another node may take it: what was done to it is no crash.
    const code = state.neverRan ? 'rule' : state.isDisrupted ? 'capacity' : 'unavailable';
    if (state.status === 'exited') throw new BerthError(code, reason ?? 'the pod ended before it ran');
    const waited = performance.now() - since;
    if (state.isPermanent) {
      pullFailedAt ??= waited;
      if (!/could not be pulled/.test(reason ?? '') || waited - pullFailedAt >= 0)
        throw ruleError(reason ?? '');
    }
    if (/could not be pulled/.test(reason ?? '') && waited - (pullFailedAt ??= waited) > PULL_PATIENCE_MS)
      throw new BerthError('unavailable', reason ?? '');
    if (state.isUnscheduled && waited > settings.scheduleTimeoutMs)
      throw new BerthError('capacity', reason ?? 'no node was found');
    if (waited > settings.startTimeoutMs)
      throw new BerthError(
        'unavailable',
        `it did not start within ${settings.startTimeoutMs / 1000} s${reason === undefined ? '' : `: ${reason}`}`,
      );
    if (reason !== undefined) await explained.report(reason);
    const next = await waits.next(pod, eventsPauseMs, signal);
    signal.throwIfAborted();
    if (next === undefined) {
      explained.readEvents(created);
      eventsPauseMs = Math.min(eventsPauseMs * EVENTS_GROWTH, LONGEST_EVENTS_PAUSE_MS);
    }
    pod = next ?? (await patiently(() => readPod(client, path, created.metadata.uid)));
  }
}

function hasRun(pod: PodObject): boolean {
  return pod.status?.containerStatuses?.[0]?.state?.terminated !== undefined;
}

/** Tells the user once what a start waits for. */
class StartExplanation {
  readonly #spec: InstanceSpec;
  readonly #deps: PodLaunchDeps;
  readonly #said = new Set<string>();
  #isReading = false;
  #hasEnded = false;

  constructor(spec: InstanceSpec, deps: PodLaunchDeps) {
    this.#spec = spec;
    this.#deps = deps;
  }

  async report(line: string): Promise<void> {
    if (this.#hasEnded || this.#said.has(line)) return;
    this.#said.add(line);
    await this.#deps.reportProgress(line);
  }

  /** The start is over: nothing is said of it any more. */
  end(): void {
    this.#hasEnded = true;
  }

  /** Only events show that an image is being pulled. The start continues meanwhile. */
  readEvents({ metadata: { uid } }: PodObject): void {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#reportEvents(uid)
      .catch((error: unknown) =>
        this.#deps.onProblem(`what ${this.#spec.id} waits for could not be logged`, error),
      )
      .finally(() => (this.#isReading = false));
  }

  async #reportEvents(uid: string): Promise<void> {
    const events = await this.#deps.events
      .of(uid)
      .catch((error: unknown) => toKubernetesError(error).message);
    if (typeof events === 'string') return this.report(`What it waits for is not known: ${events}`);
    for (const { reason, message = '' } of events) {
      if (reason === 'Pulling') await this.report(`Pulling the image ${this.#spec.image}.`);
      const [, duration] = /Successfully pulled image .* in ([\d.]+\w+)/.exec(message) ?? [];
      if (reason === 'Pulled' && duration !== undefined)
        await this.report(`The image is here, after ${duration}.`);
      if (reason === 'FailedMount' || reason === 'FailedAttachVolume')
        await this.report(`A volume is not ready: ${message}`);
    }
  }
}
