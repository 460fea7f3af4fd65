import { join } from 'node:path';
import type { Clock } from '../../support/clock.ts';
import type { Ids } from '../../support/ids.ts';
import type { GpuCapacity } from '../engine.ts';
import type { InstanceSpec } from '../instance.ts';
import type { KeptLogs } from '../kept-logs.ts';
import { LogBook } from '../logs/log-book.ts';
import { checkMemory } from '../memory.ts';
import { type Cgroups, removeCgroup } from './cgroups.ts';
import { environmentFor } from './environment.ts';
import type { Holdings } from './holdings.ts';
import { commandOf, findProgram, type ImagePlaces, resolveImage, showFiles } from './images.ts';
import { InstanceFolder, type SavedInstance } from './instance-folder.ts';
import { endMembers } from './membership.ts';
import { makeMounts } from './mounts.ts';
import { bootId } from './process-table.ts';
import type { RemovedFolders } from './removed-folders.ts';
import { supervise, type Supervised } from './supervise.ts';

/** Runtimes reserve memory that they never use, and a limit of the process counts it: Node alone more than half a gigabyte. */
const RESERVED_UNUSED_GB = 2;
const KILOBYTES_PER_GB = 1024 ** 2;
const BYTES_PER_GB = 1024 ** 3;

export interface LaunchParts {
  /** Where instances have their folders. */
  path: string;
  removed: RemovedFolders;
  places: ImagePlaces;
  logs: KeptLogs;
  holdings: Holdings;
  cgroups: Cgroups | undefined;
  clock: Clock;
  ids: Ids;
}

/** The machine as it stands at the moment of a launch. */
export interface LaunchGround {
  memoryInGb: number;
  freeMemoryInBytes: number;
  gpus: readonly GpuCapacity[];
  gpuIndexes: ReadonlyMap<string, readonly number[]>;
}

export interface Launched extends Supervised {
  saved: SavedInstance;
  folder: InstanceFolder;
  env: Readonly<Record<string, string>>;
  book: LogBook;
}

/** From a wish to a running process. What was taken on the way is given back when a step fails. */
export async function launch(
  spec: InstanceSpec,
  ground: LaunchGround,
  parts: LaunchParts,
): Promise<Launched> {
  const { holdings, cgroups, clock } = parts;
  const image = resolveImage(spec.image, parts.places);
  const argv = commandOf(image, spec.command);
  await using undo = new AsyncDisposableStack();

  const gpus =
    spec.gpus === null || spec.gpus.count === 0
      ? null
      : holdings.gpus.take(spec.id, spec.gpus, ground.gpus, ground.gpuIndexes);
  undo.defer(() => holdings.gpus.release(spec.id));
  const isVirtual =
    gpus !== null && ground.gpus.some(({ gpuTypeId, virtual }) => gpuTypeId === gpus.typeId && virtual);
  checkMemory(
    { memoryInGb: spec.memoryInGb, virtual: isVirtual },
    ground.memoryInGb,
    ground.freeMemoryInBytes,
  );

  const ports: { port: number; hostPort: number }[] = [];
  undo.defer(() => holdings.ports.release(ports.map(({ hostPort }) => hostPort)));
  await Promise.all(
    [...new Set(spec.ports.map((entry) => entry.port))].map(async (port) =>
      ports.push({ port, hostPort: await holdings.ports.take() }),
    ),
  );

  const folder = new InstanceFolder(join(parts.path, spec.id));
  // Fresh and empty, whatever an earlier run left here.
  await parts.removed.take(folder);
  undo.defer(() => parts.removed.take(folder));
  folder.make();
  const mounts = makeMounts(spec.mounts, folder.root, (link) => holdings.isLink(link));
  const saved = {
    id: spec.id,
    run: parts.ids.resource(),
    labels: spec.labels,
    image: spec.image,
    bootId: bootId(),
    startedAt: clock.now(),
    ports,
    gpus,
    links: mounts.links,
  };
  holdings.hold(saved);
  undo.defer(() => holdings.release(saved));
  if (image.folder !== null) await showFiles(image.folder, folder.root);

  const env = environmentFor({
    spec,
    folder,
    ports,
    gpus,
    realGpus: ground.gpus.some(({ virtual }) => !virtual),
  });
  await findProgram(argv[0], folder.root, env['PATH'] ?? '');
  const cgroup = cgroups?.make(spec.id, { cpu: spec.cpu, memoryInBytes: spec.memoryInGb * BYTES_PER_GB });
  undo.defer(() => void (cgroup && removeCgroup(cgroup.path)));
  const whole: SavedInstance = { ...saved, cgroup: cgroup?.path ?? null };
  folder.save(whole);

  undo.defer(() => endMembers({ root: folder.root, cgroup: whole.cgroup, started: folder.started() }));
  const memoryInKb =
    cgroup?.limitsMemory || spec.memoryInGb <= 0
      ? null
      : Math.round((spec.memoryInGb + RESERVED_UNUSED_GB) * KILOBYTES_PER_GB);
  // The log is opened while the process starts, which writes to its own file until then.
  const opening = openLog(spec, mounts.elsewhere, parts);
  undo.defer(() =>
    opening.then(
      (book) => book.end(),
      () => undefined,
    ),
  );
  const [running, book] = await Promise.all([
    supervise({ folder, argv, env, cgroup: whole.cgroup, memoryInKb }),
    opening,
  ]);
  undo.move();
  return { saved: whole, folder, env, book, ...running };
}

async function openLog(
  spec: InstanceSpec,
  elsewhere: readonly string[],
  { logs, clock }: LaunchParts,
): Promise<LogBook> {
  const lines = [
    ...elsewhere.map(
      (path) =>
        `The volume for ${path} is at $BERTH_ROOT${path}: the path itself is not free on this machine.`,
    ),
    `Starting ${spec.image}.`,
  ];
  for (const line of lines) spec.onProgress?.(line);
  const book = await LogBook.open(logs.folder(spec.id));
  await logs.keep(spec.id);
  await book.append(lines.map((line) => ({ ts: clock.now(), source: 'system', line })));
  return book;
}
