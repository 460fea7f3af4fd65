import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { Clock } from '../../support/clock.ts';
import type { Ids } from '../../support/ids.ts';
import type { GpuCapacity } from '../engine.ts';
import type { InstanceSpec } from '../instance.ts';
import { LogBook } from '../logs/log-book.ts';
import { type Cgroups, removeCgroup } from './cgroups.ts';
import { environmentFor } from './environment.ts';
import type { Holdings } from './holdings.ts';
import { commandOf, findProgram, type ImagePlaces, resolveImage, showFiles } from './images.ts';
import { InstanceFolder, type SavedInstance, type Started } from './instance-folder.ts';
import type { KeptLogs } from './kept-logs.ts';
import { endMembers } from './membership.ts';
import { checkMemory } from './memory.ts';
import { makeMounts } from './mounts.ts';
import { bootId } from './process-table.ts';
import { supervise } from './supervise.ts';

const KILOBYTES_PER_GB = 1024 ** 2;
const BYTES_PER_GB = 1024 ** 3;

export interface LaunchParts {
  /** Where instances have their folders. */
  path: string;
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

export interface Launched {
  saved: SavedInstance;
  folder: InstanceFolder;
  started: Started;
  env: Readonly<Record<string, string>>;
  book: LogBook;
  supervisor: ChildProcess;
}

/** From a wish to a running process. What was taken on the way is given back when a step fails. */
export async function launch(spec: InstanceSpec, ground: LaunchGround, parts: LaunchParts): Promise<Launched> {
  const { holdings, cgroups, clock, logs } = parts;
  const image = resolveImage(spec.image, parts.places);
  const argv = commandOf(image, spec.command);
  await using undo = new AsyncDisposableStack();

  const gpus = spec.gpus === null || spec.gpus.count === 0 ? null : holdings.gpus.take(spec.id, spec.gpus, ground.gpus, ground.gpuIndexes);
  undo.defer(() => holdings.gpus.release(spec.id));
  const isVirtual = gpus !== null && ground.gpus.some(({ gpuTypeId, virtual }) => gpuTypeId === gpus.typeId && virtual);
  checkMemory({ memoryInGb: spec.memoryInGb, virtual: isVirtual }, ground.memoryInGb, ground.freeMemoryInBytes);

  const ports: { port: number; hostPort: number }[] = [];
  undo.defer(() => holdings.ports.release(ports.map(({ hostPort }) => hostPort)));
  for (const port of new Set(spec.ports.map((entry) => entry.port))) ports.push({ port, hostPort: await holdings.ports.take() });

  const folder = new InstanceFolder(join(parts.path, spec.id));
  undo.defer(() => folder.remove());
  await folder.make();
  const mounts = makeMounts(spec.mounts, folder.root, (link) => holdings.isLink(link));
  const saved = { id: spec.id, run: parts.ids.resource(), labels: spec.labels, image: spec.image, bootId: bootId(), startedAt: clock.now(), ports, gpus, links: mounts.links };
  holdings.hold(saved);
  undo.defer(() => holdings.release(saved));
  if (image.folder !== null) await showFiles(image.folder, folder.root);

  const env = environmentFor({ spec, folder, ports, gpus, realGpus: ground.gpus.some(({ virtual }) => !virtual) });
  await findProgram(argv[0], folder.root, env['PATH'] ?? '');
  const cgroup = cgroups?.make(spec.id, { cpu: spec.cpu, memoryInBytes: spec.memoryInGb * BYTES_PER_GB });
  undo.defer(() => void (cgroup && removeCgroup(cgroup.path)));
  const whole: SavedInstance = { ...saved, cgroup: cgroup?.path ?? null };
  folder.save(whole);

  const book = await LogBook.open(logs.folder(spec.id));
  undo.defer(() => book.end());
  await logs.keep(spec.id);
  const say = async (line: string): Promise<void> => {
    spec.onProgress?.(line);
    await book.append([{ ts: clock.now(), source: 'system', line }]);
  };
  for (const path of mounts.elsewhere) await say(`The volume for ${path} is at $BERTH_ROOT${path}: the path itself is not free on this machine.`);
  await say(`Starting ${spec.image}.`);
  undo.defer(() => endMembers({ root: folder.root, cgroup: whole.cgroup, started: folder.started() }));
  const memoryInKb = cgroup?.limitsMemory || spec.memoryInGb <= 0 ? null : Math.round(spec.memoryInGb * KILOBYTES_PER_GB);
  const running = await supervise({ folder, argv, env, cgroup: whole.cgroup, memoryInKb });
  undo.move();
  return { saved: whole, folder, env, book, ...running };
}
