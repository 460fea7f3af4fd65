import { mkdir } from 'node:fs/promises';
import { BerthError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import type { StartContext } from '../container-engine.ts';
import type { GpuAllocator } from '../gpu-allocator.ts';
import { chownTree } from '../chown-tree.ts';
import type { InstanceSpec } from '../instance.ts';
import { notAcceleratedLine, pythonHookProblem } from '../python-hook.ts';
import { parseReference } from '../image-reference.ts';
import { checkMemory } from '../memory-check.ts';
import type { PortPool } from '../port-pool.ts';
import { type ContainerContext, containerName, containerOptions } from './container-options.ts';
import type { InspectedContainer, InspectedImage } from './client/docker-objects.ts';
import type { DockerContainer } from './docker-container.ts';
import type { Daemon } from './daemon.ts';
import { inspectContainer, removeContainer } from './docker-instance.ts';
import { isWrongState, toStartError, daemonMessage } from './client/docker.errors.ts';
import type { DockerHostResources } from './docker-host-resources.ts';
import { checkSandbox } from './container-sandbox.ts';
import { accountNetworkName } from './docker-networks.ts';
import type { DockerNetworks } from './docker-networks.ts';
import { checkProgram } from './container-program.ts';
import { ensureImage } from './image-pull.ts';
import type { PulledImages } from './pulled-images.ts';

const BYTES_PER_GB = 1024 ** 3;
const MAX_TRIES = 5;
const PORT_TAKEN = /port is already allocated|address already in use/i;

export interface ContainerLaunchDeps extends Omit<StartContext, 'log'> {
  daemon: Daemon;
  installation: string;
  hostResources: () => Promise<DockerHostResources>;
  gpus: GpuAllocator;
  networks: DockerNetworks;
  pulledImages: PulledImages;
  /** Throws where the disk of the daemon is nearly full. */
  checkSpace(): Promise<void>;
  /** Public port numbers for ports whose number is passed to the instance. */
  ports: PortPool;
  systemLog: Log | undefined;
}

/** Starts a container from its spec. If a step fails, the resources taken so far are released. */
export async function launchContainer(
  spec: InstanceSpec,
  deps: ContainerLaunchDeps,
): Promise<DockerContainer> {
  const { daemon, signal, reportProgress, gpus: allocator } = deps;
  await deps.checkSpace();
  const wasPulled = await ensureImage(daemon, spec, reportProgress, signal, deps.checkSpace);
  await deps.pulledImages
    .use(spec.image, wasPulled)
    .catch((error: unknown) => deps.systemLog?.warn({ err: error }, 'the use of an image was not noted'));
  spec.onImageReady?.();
  await using undo = new AsyncDisposableStack();

  const hostResources = await deps.hostResources();
  checkSandbox(spec.sandbox ?? {}, hostResources.security);
  const gpus =
    spec.gpus === null || spec.gpus.count === 0
      ? null
      : allocator.allocate(spec.id, spec.gpus, hostResources.gpus, hostResources.gpuIndexes);
  undo.defer(() => allocator.release(spec.id));
  const virtual =
    gpus !== null && hostResources.gpus.some((gpu) => gpu.gpuTypeId === gpus.typeId && gpu.virtual);
  checkMemory(
    { memoryInGb: spec.memoryInGb, virtual },
    Math.max(1, Math.round(hostResources.memoryInBytes / BYTES_PER_GB)),
    hostResources.isThisMachine ? process.availableMemory() : Infinity,
  );

  for (const { source } of spec.mounts) {
    await mkdir(source, { recursive: true });
    if (hostResources.remappedRoot !== undefined && hostResources.isThisMachine)
      await chownTree(source, hostResources.remappedRoot);
  }
  signal.throwIfAborted();
  await deps.removePrevious();
  const network = spec.network?.name ?? accountNetworkName(deps.installation, spec.labels['account'] ?? '');
  undo.defer(() => deps.networks.removeIfEmpty(network));
  const release = deps.networks.reserve(network);
  undo.defer(release);
  if (spec.network === undefined) await deps.networks.ensureAccount(network);
  else await deps.networks.ensure(spec.network);
  const pythonHook = await resolvePythonHook(spec, hostResources, deps);
  await reportProgress(`Starting ${spec.image}.`);
  const isPodman = await daemon.isPodman();
  for (let tries = 1; ; tries += 1) {
    const published = await choosePublicPorts(spec, deps.ports);
    try {
      const running = await run(
        spec,
        {
          ...hostResources,
          installation: deps.installation,
          network,
          gpus,
          virtual,
          hasInit: true,
          published,
          isPodman,
          pythonHook,
        },
        deps,
      );
      release();
      undo.move();
      return running;
    } catch (error) {
      // Another process took one of the ports: choose others.
      if (published.size === 0 || tries === MAX_TRIES || !PORT_TAKEN.test(daemonMessage(error)))
        throw signal.aborted ? signal.reason : error;
    } finally {
      // The container holds the ports now.
      deps.ports.release([...published.values()]);
    }
  }
}

/** Undefined if the instance has no hook, or cannot use it: then its log says why. */
async function resolvePythonHook(
  { pythonHook: hook, image }: InstanceSpec,
  { isThisMachine }: DockerHostResources,
  { daemon, reportProgress }: ContainerLaunchDeps,
): Promise<ContainerContext['pythonHook']> {
  if (hook === undefined) return undefined;
  const problem = isThisMachine ? pythonHookProblem(hook) : 'the Docker daemon is on another machine';
  if (problem !== undefined) {
    await reportProgress(notAcceleratedLine(problem));
    return undefined;
  }
  const { Config: config } = await daemon.call((client) =>
    client.get<InspectedImage>(`/images/${parseReference(image).full}/json`),
  );
  const variable = config.Env?.findLast((pair) => pair.startsWith('PYTHONPATH='));
  return { hook, imagePath: variable?.slice('PYTHONPATH='.length) };
}

/** Chooses the public numbers of ports whose number is passed to the instance. */
async function choosePublicPorts({ ports }: InstanceSpec, pool: PortPool): Promise<Map<number, number>> {
  const published = new Map<number, number>();
  for (const { port, publicPortVariable, preferSamePublicPort } of ports) {
    if (publicPortVariable !== undefined && !published.has(port))
      published.set(port, await pool.allocate(preferSamePublicPort === true ? port : undefined));
  }
  return published;
}

async function run(
  spec: InstanceSpec,
  context: ContainerContext,
  deps: ContainerLaunchDeps,
): Promise<DockerContainer> {
  const { daemon, signal } = deps;
  await using undo = new AsyncDisposableStack();
  const containerId = await create(spec, context, deps);
  undo.defer(() => removeContainer(daemon, containerId));
  try {
    const client = await daemon.client();
    if (spec.command.entrypoint.length + spec.command.cmd.length > 0)
      await checkProgram(client, await client.get<InspectedContainer>(`/containers/${containerId}/json`));
    signal.throwIfAborted();
    await client.post(`/containers/${containerId}/start`);
    signal.throwIfAborted();
  } catch (error) {
    throw signal.aborted ? signal.reason : toStartError(error);
  }
  const running = await inspectContainer(daemon, containerId);
  if (running === undefined)
    throw new BerthError('unavailable', `the container of ${spec.id} was removed while it started`);
  undo.move();
  return running;
}

/** Features that a daemon may lack and an instance can do without. */
const OPTIONAL_FEATURES = [
  {
    pattern: /storage-opt|quota/i,
    without: { limitsDisk: false },
    warning: 'the disks of containers are not limited in size here',
  },
  {
    // Berth itself runs in a container whose files the daemon cannot see.
    pattern: /bind source path does not exist/i,
    without: { pythonHook: undefined },
    warning: 'workers are not accelerated here: the Docker daemon does not see the files of this server',
  },
  {
    pattern: /init binary not found/i,
    without: { hasInit: false },
    warning: 'containers run without an init process here: the daemon has none (Podman: install catatonit)',
  },
] as const;

/** Creates the container and answers with its id. */
async function create(
  spec: InstanceSpec,
  context: ContainerContext,
  deps: Pick<ContainerLaunchDeps, 'daemon' | 'systemLog'>,
): Promise<string> {
  const createContainer = async (): Promise<string> => {
    const query = { name: containerName(spec.id) };
    const body = containerOptions(spec, context);
    const { Id: containerId } = await deps.daemon.call((client) =>
      client.post<{ Id: string }>('/containers/create', { query, body }),
    );
    return containerId;
  };
  try {
    return await createContainer();
  } catch (error) {
    const { message } = error as Error;
    const missing = OPTIONAL_FEATURES.find(
      ({ pattern, without }) =>
        pattern.test(message) &&
        Object.keys(without).some((name) => Boolean(context[name as keyof ContainerContext])),
    );
    if (missing !== undefined) {
      deps.systemLog?.warn({ reason: message }, missing.warning);
      return create(spec, { ...context, ...missing.without }, deps);
    }
    if (isWrongState(error) && (await removeLeftoverContainer(spec.id, context.installation, deps.daemon)))
      return createContainer();
    throw toStartError(error);
  }
}

/**
 * Removes a container of this name that an interrupted start left. A container of another installation stays.
 */
async function removeLeftoverContainer(id: string, installation: string, daemon: Daemon): Promise<boolean> {
  const existing = await inspectContainer(daemon, containerName(id));
  if (existing !== undefined && (existing.installation !== installation || !existing.isNew)) return false;
  if (existing !== undefined) await removeContainer(daemon, existing.containerId);
  return true;
}
