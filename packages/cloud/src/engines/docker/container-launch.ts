import { mkdir } from 'node:fs/promises';
import type Docker from 'dockerode';
import { BerthError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import type { GpuAllocator } from '../gpu-allocator.ts';
import type { InstanceSpec } from '../instance.ts';
import { notAcceleratedLine, pythonHookProblem } from '../python-hook.ts';
import { parseReference } from './image-reference.ts';
import { checkMemory } from '../memory-check.ts';
import type { PortPool } from '../port-pool.ts';
import { type ContainerContext, containerName, containerOptions } from './container-options.ts';
import type { DockerContainer } from './docker-container.ts';
import type { Daemon } from './daemon.ts';
import { inspectContainer, removeContainer } from './docker-instance.ts';
import { isWrongState, toStartError, daemonMessage } from './docker.errors.ts';
import type { DockerHostResources } from './docker-host-resources.ts';
import type { DockerNetworks } from './docker-networks.ts';
import { checkProgram } from './container-program.ts';
import { ensureImage } from './image-pull.ts';

const BYTES_PER_GB = 1024 ** 3;
const MAX_TRIES = 5;
const PORT_TAKEN = /port is already allocated|address already in use/i;

export interface ContainerLaunchDeps {
  daemon: Daemon;
  installation: string;
  hostResources: () => Promise<DockerHostResources>;
  gpus: GpuAllocator;
  networks: DockerNetworks;
  /** Numbers outside for ports that have to know theirs. */
  ports: PortPool;
  /** A line about how it goes. */
  reportProgress: (line: string) => Promise<void>;
  /** The last step before the container is made: what an earlier run left goes. */
  removePrevious: () => Promise<void>;
  /** Ends the attempt. */
  signal: AbortSignal;
  log: Log | undefined;
}

/** From a wish to a running container. What was made or taken on the way is given back when a step fails. */
export async function launchContainer(
  spec: InstanceSpec,
  deps: ContainerLaunchDeps,
): Promise<DockerContainer> {
  const { daemon, signal, reportProgress, gpus: shelf } = deps;
  await ensureImage(daemon, spec, reportProgress, signal);
  await using undo = new AsyncDisposableStack();

  const ground = await deps.hostResources();
  const gpus =
    spec.gpus === null || spec.gpus.count === 0
      ? null
      : shelf.allocate(spec.id, spec.gpus, ground.gpus, ground.gpuIndexes);
  undo.defer(() => shelf.release(spec.id));
  const virtual = gpus !== null && ground.gpus.some((gpu) => gpu.gpuTypeId === gpus.typeId && gpu.virtual);
  checkMemory(
    { memoryInGb: spec.memoryInGb, virtual },
    Math.max(1, Math.round(ground.memoryInBytes / BYTES_PER_GB)),
    ground.isThisMachine ? process.availableMemory() : Infinity,
  );

  for (const { source } of spec.mounts) await mkdir(source, { recursive: true });
  signal.throwIfAborted();
  await deps.removePrevious();
  if (spec.network !== undefined) await deps.networks.ensure(spec.network);
  const pythonHook = await resolvePythonHook(spec, ground, deps);
  await reportProgress(`Starting ${spec.image}.`);
  const isPodman = await daemon.isPodman();
  for (let tries = 1; ; tries += 1) {
    const published = await choosePublicPorts(spec, deps.ports);
    try {
      const running = await run(
        spec,
        {
          ...ground,
          installation: deps.installation,
          gpus,
          virtual,
          hasInit: true,
          published,
          isPodman,
          pythonHook,
        },
        deps,
      );
      undo.move();
      return running;
    } catch (error) {
      // Somebody else was quicker to take one of the numbers.
      if (published.size === 0 || tries === MAX_TRIES || !PORT_TAKEN.test(daemonMessage(error)))
        throw signal.aborted ? signal.reason : error;
    } finally {
      // Once it runs, nobody else can listen there.
      deps.ports.release([...published.values()]);
    }
  }
}

/** Undefined where the instance has no hook, or cannot have it: then its log says why. */
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
    client.getImage(parseReference(image).full).inspect(),
  );
  const variable = config.Env?.findLast((pair) => pair.startsWith('PYTHONPATH='));
  return { hook, imagePath: variable?.slice('PYTHONPATH='.length) };
}

/** Chooses the number outside for those ports whose instance is told. */
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
  ground: ContainerContext,
  deps: ContainerLaunchDeps,
): Promise<DockerContainer> {
  const { daemon, signal } = deps;
  await using undo = new AsyncDisposableStack();
  const container = await create(spec, ground, deps);
  undo.defer(() => removeContainer(daemon, container.id));
  try {
    if (spec.command.entrypoint.length + spec.command.cmd.length > 0)
      await checkProgram(container, await container.inspect());
    signal.throwIfAborted();
    await container.start();
    signal.throwIfAborted();
  } catch (error) {
    throw signal.aborted ? signal.reason : toStartError(error);
  }
  const running = await inspectContainer(daemon, container.id);
  if (running === undefined)
    throw new BerthError('unavailable', `the container of ${spec.id} was removed while it started`);
  undo.move();
  return running;
}

/** What a daemon may not be able to do and an instance can do without. */
const OPTIONAL_FEATURES = [
  {
    words: /storage-opt|quota/i,
    without: { limitsDisk: false },
    told: 'the disks of containers are not limited in size here',
  },
  {
    // Berth itself runs in a container, whose files the daemon does not see.
    words: /bind source path does not exist/i,
    without: { pythonHook: undefined },
    told: 'workers are not accelerated here: the Docker daemon does not see the files of this server',
  },
  {
    words: /init binary not found/i,
    without: { hasInit: false },
    told: 'containers run without an init process here: the daemon has none (Podman: install catatonit)',
  },
] as const;

async function create(
  spec: InstanceSpec,
  ground: ContainerContext,
  deps: Pick<ContainerLaunchDeps, 'daemon' | 'log'>,
): Promise<Docker.Container> {
  const make = (): Promise<Docker.Container> =>
    deps.daemon.call((client) => client.createContainer(containerOptions(spec, ground)));
  try {
    return await make();
  } catch (error) {
    const { message } = error as Error;
    const dispensable = OPTIONAL_FEATURES.find(
      ({ words, without }) =>
        words.test(message) &&
        Object.keys(without).some((name) => Boolean(ground[name as keyof ContainerContext])),
    );
    if (dispensable !== undefined) {
      deps.log?.warn({ reason: message }, dispensable.told);
      return create(spec, { ...ground, ...dispensable.without }, deps);
    }
    if (isWrongState(error) && (await removeLeftoverContainer(spec.id, ground.installation, deps.daemon)))
      return make();
    throw toStartError(error);
  }
}

/** A start that was cut off may have left a container with this name. That of another installation stays. */
async function removeLeftoverContainer(id: string, installation: string, daemon: Daemon): Promise<boolean> {
  const holder = await inspectContainer(daemon, containerName(id));
  if (holder !== undefined && (holder.installation !== installation || !holder.isNew)) return false;
  if (holder !== undefined) await removeContainer(daemon, holder.containerId);
  return true;
}
