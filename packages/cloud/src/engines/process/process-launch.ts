import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../../support/clock.ts';
import type { Ids } from '../../support/ids.ts';
import { PYTHON_WORKER_PACKAGE } from '../../support/program-files.ts';
import type { InstanceSpec } from '../instance.ts';
import type { LogRetention } from '../logs/log-retention.ts';
import { SegmentedLog } from '../logs/segmented-log.ts';
import { notAcceleratedLine, pythonHookProblem } from '../python-hook.ts';
import { checkMemory } from '../memory-check.ts';
import { type Cgroups, removeCgroup } from './cgroups.ts';
import { buildEnvironment } from './process-environment.ts';
import type { HostAllocations } from './host-allocations.ts';
import {
  resolveCommand,
  findProgram,
  type LocalImagePaths,
  resolveImage,
  linkImageFiles,
} from './local-images.ts';
import { InstanceFolder, type SavedInstance } from './instance-folder.ts';
import { killInstanceProcesses } from './instance-processes.ts';
import { bytecodeCache } from './python/environment-build.ts';
import type { InstancePython } from './python/python-environments.ts';
import { type CreatedMounts, createMounts, linkMountsBelow } from './mount-links.ts';
import {
  asUser,
  environmentScript,
  inNewSandbox,
  TRUSTED_ENVIRONMENT,
  withUnusualVariables,
} from './isolation/account-command.ts';
import { programFolders } from './isolation/program-folders.ts';
import { buildInstanceView, type InstanceViewOptions } from './isolation/instance-view.ts';
import type { Tenant } from './isolation/tenant.ts';
import { chownTree } from '../chown-tree.ts';
import { createOwnedFolder, grantRead, makePassable } from './isolation/tenant-files.ts';
import { bootId } from './process-table.ts';
import type { RemovedFolders } from './removed-folders.ts';
import { supervise, type SupervisedProcess, type SuperviseOptions } from './supervise.ts';
import type { GpuCapacity } from '../../domain/placement/engine-capacity.ts';

/** Runtimes reserve memory that they never use (Node more than 0.5 GB), and a process limit counts it. */
const RESERVED_UNUSED_GB = 2;
const KILOBYTES_PER_GB = 1024 ** 2;
const BYTES_PER_GB = 1024 ** 3;

export interface ProcessLaunchDeps {
  /** The folder of all instance folders. */
  path: string;
  removedFolders: RemovedFolders;
  imagePaths: LocalImagePaths;
  logs: LogRetention;
  /** How much of an instance's log is kept. */
  logBytes: number;
  allocations: HostAllocations;
  cgroups: Cgroups | undefined;
  /** The Python environment, if the image needs one. */
  python: InstancePython | undefined;
  /** Its log, where that is open already. */
  openedLog: SegmentedLog | undefined;
  /** Berth's data folder. */
  data: string;
  /** Folders that instances of all accounts may read: Berth's programs and those that the operator names. */
  readable: readonly string[];
  clock: Clock;
  ids: Ids;
}

/** The machine's resources at the time of a launch. */
export interface HostResources {
  memoryInGb: number;
  freeMemoryInBytes: number;
  gpus: readonly GpuCapacity[];
  gpuIndexes: ReadonlyMap<string, readonly number[]>;
}

export interface LaunchedProcess extends SupervisedProcess {
  saved: SavedInstance;
  folder: InstanceFolder;
  env: Readonly<Record<string, string>>;
  log: SegmentedLog;
}

/** Starts a process from its spec. If a step fails, the resources taken so far are released. */
export async function launchProcess(
  spec: InstanceSpec,
  hostResources: HostResources,
  deps: ProcessLaunchDeps,
  tenant: Tenant | undefined,
): Promise<LaunchedProcess> {
  const { allocations, cgroups, clock } = deps;
  const python = deps.python?.folder;
  const hookProblem = spec.pythonHook && pythonHookProblem(spec.pythonHook);
  const imagePaths = { ...deps.imagePaths, pythonCache: pythonCacheFor(deps, tenant) };
  const image = resolveImage(spec.image, imagePaths);
  const argv = resolveCommand(image, spec.command);
  await using undo = new AsyncDisposableStack();

  const gpus =
    spec.gpus === null || spec.gpus.count === 0
      ? null
      : allocations.gpus.allocate(spec.id, spec.gpus, hostResources.gpus, hostResources.gpuIndexes);
  undo.defer(() => allocations.gpus.release(spec.id));
  const isVirtual =
    gpus !== null &&
    hostResources.gpus.some(({ gpuTypeId, virtual }) => gpuTypeId === gpus.typeId && virtual);
  checkMemory(
    { memoryInGb: spec.memoryInGb, virtual: isVirtual },
    hostResources.memoryInGb,
    hostResources.freeMemoryInBytes,
  );

  const ports: { port: number; hostPort: number }[] = [];
  undo.defer(() => allocations.ports.release(ports.map(({ hostPort }) => hostPort)));
  await Promise.all(
    [...new Set(spec.ports.map((entry) => entry.port))].map(async (port) =>
      ports.push({ port, hostPort: await allocations.ports.allocate() }),
    ),
  );

  const folder = new InstanceFolder(join(deps.path, spec.id));
  // Remove the folder of an earlier run.
  await deps.removedFolders.remove(folder);
  undo.defer(() => deps.removedFolders.remove(folder));
  folder.create(tenant?.user);
  const cgroup = cgroups?.create(spec.id, { cpu: spec.cpu, memoryInBytes: spec.memoryInGb * BYTES_PER_GB });
  undo.defer(() => void (cgroup && removeCgroup(cgroup.path)));
  const realGpus = hostResources.gpus.some(({ virtual }) => !virtual);
  const mounts =
    tenant === undefined
      ? createMounts(spec.mounts, folder.root, (link) => allocations.isMountLink(link))
      : await prepareForTenant(tenant, spec, folder, image.folder, {
          data: deps.data,
          readable: [
            ...deps.readable,
            ...(image.folder === null ? [] : [image.folder]),
            ...(hookProblem === undefined && spec.pythonHook !== undefined ? [spec.pythonHook.source] : []),
            ...(deps.python === undefined ? [] : programFolders(deps.python.interpreter)),
          ],
          writable: [python ?? imagePaths.pythonCache],
          gpus: gpus !== null && realGpus,
          memoryInBytes: spec.memoryInGb * BYTES_PER_GB,
          cgroup: cgroup?.path,
        });
  const saved = {
    id: spec.id,
    run: deps.ids.resource(),
    labels: spec.labels,
    image: spec.image,
    bootId: bootId(),
    startedAt: clock.now(),
    ports,
    gpus,
    links: mounts.links,
    ...(python !== undefined && { python }),
    mounts: spec.mounts,
    ...(spec.containerDiskInGb > 0 && { diskInGb: spec.containerDiskInGb }),
    ...(tenant !== undefined && { user: tenant.user }),
    ...(tenant?.namespaces === true && { namespaces: true as const }),
  };
  allocations.reserve(saved);
  undo.defer(() => allocations.release(saved));
  if (image.folder !== null) await linkImageFiles(image.folder, folder.root);
  // With all that Berth put there: folders of mount points, and links.
  if (tenant !== undefined) await chownTree(folder.root, tenant.user);

  const env = buildEnvironment({
    spec,
    pythonHook: hookProblem === undefined ? spec.pythonHook : undefined,
    // An environment has the SDK installed.
    ...(image.folder !== null &&
      python === undefined && { pythonWorkerFolder: dirname(PYTHON_WORKER_PACKAGE) }),
    folder,
    python,
    ports,
    gpus,
    realGpus,
    privateTmp: tenant?.namespaces === true,
  });
  // What a path leads to in the account's view is not known here.
  if (tenant === undefined || !argv[0].includes('/'))
    await findProgram(argv[0], folder.root, env['PATH'] ?? '');
  const savedInstance: SavedInstance = { ...saved, cgroup: cgroup?.path ?? null };
  folder.save(savedInstance);

  undo.defer(() =>
    killInstanceProcesses({
      root: folder.root,
      cgroup: savedInstance.cgroup,
      started: folder.readStarted(),
      uid: tenant?.user.uid,
      namespaces: tenant?.namespaces === true,
    }),
  );
  const memoryInKb =
    cgroup?.limitsMemory || spec.memoryInGb <= 0
      ? null
      : Math.round((spec.memoryInGb + RESERVED_UNUSED_GB) * KILOBYTES_PER_GB);
  // The log is opened while the process starts; files hold what it writes until then.
  const opening = openLog(spec, mounts.belowRootOnly, hookProblem, deps);
  undo.defer(() =>
    opening.then(
      (log) => log.end(),
      () => undefined,
    ),
  );
  const [running, log] = await Promise.all([
    supervise({
      folder,
      ...(tenant === undefined ? { argv, env } : asTenant(tenant, folder, argv, env)),
      cgroup: savedInstance.cgroup,
      memoryInKb,
    }),
    opening,
  ]);
  undo.move();
  return { saved: savedInstance, folder, env, log, ...running };
}

/** Compiled code that another account could change would run as this one. */
function pythonCacheFor({ python, imagePaths }: ProcessLaunchDeps, tenant: Tenant | undefined): string {
  if (python !== undefined) return bytecodeCache(python.folder);
  return tenant === undefined
    ? imagePaths.pythonCache
    : join(imagePaths.pythonCache, String(tenant.user.uid));
}

/** Berth's own programs get BERTH_ROOT too: it marks the processes of the instance. */
function asTenant(
  { user, namespaces }: Tenant,
  folder: InstanceFolder,
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
): Pick<SuperviseOptions, 'argv' | 'env' | 'environmentScript'> {
  const command = withUnusualVariables(env, argv);
  const { fstab, view, root } = folder;
  return {
    argv: namespaces ? inNewSandbox({ fstab, view, cwd: root, user }, command) : asUser(user, root, command),
    env: {
      ...TRUSTED_ENVIRONMENT,
      BERTH_ROOT: root,
      BERTH_JOIN_CGROUP: 'yes',
      BERTH_PIPE_OWNER: `${user.uid}:${user.gid}`,
    },
    environmentScript: environmentScript(env),
  };
}

/** No link is made outside the instance's folder: the account chooses the mount paths, and Berth is root. */
async function prepareForTenant(
  { user, namespaces }: Tenant,
  spec: InstanceSpec,
  folder: InstanceFolder,
  imageFolder: string | null,
  view: Pick<InstanceViewOptions, 'data' | 'readable' | 'writable' | 'gpus' | 'memoryInBytes' | 'cgroup'>,
): Promise<CreatedMounts> {
  for (const path of view.writable) await createOwnedFolder(path, user);
  if (imageFolder?.startsWith(`${view.data}/`) === true) await grantRead(imageFolder, user);
  for (const { source, readOnly } of spec.mounts) {
    await mkdir(source, { recursive: true, mode: 0o700 });
    await (readOnly === true ? grantRead(source, user) : chownTree(source, user));
  }
  if (!namespaces) {
    const own = [...view.writable, ...spec.mounts.map(({ source }) => source), ...view.readable];
    for (const path of own) await makePassable(view.data, path);
  }
  if (namespaces) return { links: [], ...buildInstanceView({ folder, user, mounts: spec.mounts, ...view }) };
  return { links: [], belowRootOnly: linkMountsBelow(spec.mounts, folder.root) };
}

async function openLog(
  spec: InstanceSpec,
  belowRootOnly: readonly string[],
  hookProblem: string | undefined,
  { logs, logBytes, clock, openedLog }: ProcessLaunchDeps,
): Promise<SegmentedLog> {
  const lines = [
    ...belowRootOnly.map(
      (path) =>
        `The volume for ${path} is at $BERTH_ROOT${path}: the path itself is not free on this machine.`,
    ),
    ...(hookProblem === undefined ? [] : [notAcceleratedLine(hookProblem)]),
    `Starting ${spec.image}.`,
  ];
  for (const line of lines) spec.onProgress?.(line);
  const log = openedLog ?? (await SegmentedLog.open(logs.folder(spec.id), logBytes));
  await logs.retain(spec.id);
  await log.append(lines.map((line) => ({ ts: clock.now(), source: 'system', line })));
  return log;
}
