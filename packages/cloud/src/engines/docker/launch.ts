import { mkdir } from 'node:fs/promises';
import type Docker from 'dockerode';
import { BerthError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import type { GpuShelf } from '../gpu-shelf.ts';
import type { InstanceSpec } from '../instance.ts';
import { checkMemory } from '../memory.ts';
import type { PortPool } from '../port-pool.ts';
import { type ContainerGround, containerName, containerOptions } from './container-options.ts';
import type { Container } from './container.ts';
import type { Daemon } from './daemon.ts';
import { inspect, removeContainer } from './docker-instance.ts';
import { isIdle, startFailureOf, wordsOf } from './failure.ts';
import type { Ground } from './ground.ts';
import type { Networks } from './networks.ts';
import { checkProgram } from './program.ts';
import { ensureImage } from './pull.ts';

const BYTES_PER_GB = 1024 ** 3;
const MOST_TRIES = 5;
const PORT_TAKEN = /port is already allocated|address already in use/i;

export interface LaunchParts {
  daemon: Daemon;
  installation: string;
  ground: () => Promise<Ground>;
  gpus: GpuShelf;
  networks: Networks;
  /** Numbers outside for ports that have to know theirs. */
  ports: PortPool;
  /** A line about how it goes. */
  say: (line: string) => Promise<void>;
  /** The last step before the container is made: what an earlier run left goes. */
  clear: () => Promise<void>;
  /** Ends the attempt. */
  signal: AbortSignal;
  log: Log | undefined;
}

/** From a wish to a running container. What was made or taken on the way is given back when a step fails. */
export async function launch(spec: InstanceSpec, parts: LaunchParts): Promise<Container> {
  const { daemon, signal, say, gpus: shelf } = parts;
  await ensureImage(daemon, spec, say, signal);
  await using undo = new AsyncDisposableStack();

  const ground = await parts.ground();
  const gpus =
    spec.gpus === null || spec.gpus.count === 0
      ? null
      : shelf.take(spec.id, spec.gpus, ground.gpus, ground.gpuIndexes);
  undo.defer(() => shelf.release(spec.id));
  const virtual = gpus !== null && ground.gpus.some((gpu) => gpu.gpuTypeId === gpus.typeId && gpu.virtual);
  checkMemory(
    { memoryInGb: spec.memoryInGb, virtual },
    Math.max(1, Math.round(ground.memoryInBytes / BYTES_PER_GB)),
    ground.isThisMachine ? process.availableMemory() : Infinity,
  );

  for (const { source } of spec.mounts) await mkdir(source, { recursive: true });
  signal.throwIfAborted();
  await parts.clear();
  if (spec.network !== undefined) await parts.networks.ensure(spec.network);
  await say(`Starting ${spec.image}.`);
  const isPodman = await daemon.isPodman();
  for (let tries = 1; ; tries += 1) {
    const published = await publish(spec, parts.ports);
    try {
      const running = await run(
        spec,
        { ...ground, installation: parts.installation, gpus, virtual, hasInit: true, published, isPodman },
        parts,
      );
      undo.move();
      return running;
    } catch (error) {
      // Somebody else was quicker to take one of the numbers.
      if (published.size === 0 || tries === MOST_TRIES || !PORT_TAKEN.test(wordsOf(error)))
        throw signal.aborted ? signal.reason : error;
    } finally {
      // Once it runs, nobody else can listen there.
      parts.ports.release([...published.values()]);
    }
  }
}

/** Chooses the number outside for those ports whose instance is told. */
async function publish({ ports }: InstanceSpec, pool: PortPool): Promise<Map<number, number>> {
  const published = new Map<number, number>();
  for (const { port, publishedAs, sameOutside } of ports) {
    if (publishedAs !== undefined && !published.has(port))
      published.set(port, await pool.take(sameOutside === true ? port : undefined));
  }
  return published;
}

async function run(spec: InstanceSpec, ground: ContainerGround, parts: LaunchParts): Promise<Container> {
  const { daemon, signal } = parts;
  await using undo = new AsyncDisposableStack();
  const container = await create(spec, ground, parts);
  undo.defer(() => removeContainer(daemon, container.id));
  try {
    if (spec.command.entrypoint.length + spec.command.cmd.length > 0)
      await checkProgram(container, await container.inspect());
    signal.throwIfAborted();
    await container.start();
    signal.throwIfAborted();
  } catch (error) {
    throw signal.aborted ? signal.reason : startFailureOf(error);
  }
  const running = await inspect(daemon, container.id);
  if (running === undefined)
    throw new BerthError('unavailable', `the container of ${spec.id} was removed while it started`);
  undo.move();
  return running;
}

/** What a daemon may not be able to do and an instance can do without. */
const DISPENSABLE = [
  {
    words: /storage-opt|quota/i,
    without: { limitsDisk: false },
    told: 'the disks of containers are not limited in size here',
  },
  {
    words: /init binary not found/i,
    without: { hasInit: false },
    told: 'containers run without an init process here: the daemon has none (Podman: install catatonit)',
  },
] as const;

async function create(
  spec: InstanceSpec,
  ground: ContainerGround,
  parts: Pick<LaunchParts, 'daemon' | 'log'>,
): Promise<Docker.Container> {
  const make = (): Promise<Docker.Container> =>
    parts.daemon.ask((client) => client.createContainer(containerOptions(spec, ground)));
  try {
    return await make();
  } catch (error) {
    const { message } = error as Error;
    const dispensable = DISPENSABLE.find(
      ({ words, without }) =>
        words.test(message) &&
        Object.keys(without).some((name) => ground[name as keyof ContainerGround] === true),
    );
    if (dispensable !== undefined) {
      parts.log?.warn({ reason: message }, dispensable.told);
      return create(spec, { ...ground, ...dispensable.without }, parts);
    }
    if (isIdle(error) && (await clearName(spec.id, ground.installation, parts.daemon))) return make();
    throw startFailureOf(error);
  }
}

/** A start that was cut off may have left a container with this name. That of another installation stays. */
async function clearName(id: string, installation: string, daemon: Daemon): Promise<boolean> {
  const holder = await inspect(daemon, containerName(id));
  if (holder !== undefined && (holder.installation !== installation || !holder.isNew)) return false;
  if (holder !== undefined) await removeContainer(daemon, holder.containerId);
  return true;
}
