import { delimiter, dirname, join } from 'node:path';
import type { GpuAllocation } from '../gpu-allocator.ts';
import type { InstanceSpec, PythonHook } from '../instance.ts';
import { prependPythonPath } from '../python-hook.ts';
import type { InstanceFolder } from './instance-folder.ts';
import { bytecodeCache } from './python/environment-build.ts';

export interface EnvironmentOptions {
  spec: Pick<InstanceSpec, 'env' | 'ports'>;
  pythonHook: PythonHook | undefined;
  /** Where Python finds Berth's SDK, if nothing before it has the SDK. */
  pythonWorkerFolder?: string | undefined;
  folder: InstanceFolder;
  /** The folder of its Python environment. */
  python: string | undefined;
  ports: readonly { port: number; hostPort: number }[];
  gpus: GpuAllocation | null;
  /** The machine has real GPUs, which are hidden from an instance without any. */
  realGpus: boolean;
  /** The instance has a /tmp of its own. */
  privateTmp?: boolean;
}

/** The whole environment of an instance. Of Berth's own environment only PATH and LANG are passed on. */
export function buildEnvironment({
  spec,
  pythonHook,
  pythonWorkerFolder,
  folder,
  python,
  ports,
  gpus,
  realGpus,
  privateTmp = false,
}: EnvironmentOptions): Record<string, string> {
  return {
    PATH: searchPath(),
    HOME: folder.root,
    LANG: process.env['LANG'] ?? 'C.UTF-8',
    TMPDIR: privateTmp ? '/tmp' : folder.tmp,
    ...firstHttpPort(spec, ports),
    ...spec.env,
    ...pythonPath(spec, pythonHook, pythonWorkerFolder),
    ...(python !== undefined && pythonEnvironment(python, spec)),
    BERTH_ROOT: folder.root,
    ...portVariables(spec, ports),
    ...gpuVariables(gpus, realGpus),
  };
}

function pythonPath(
  { env }: EnvironmentOptions['spec'],
  pythonHook: PythonHook | undefined,
  workerFolder: string | undefined,
): Record<string, string> {
  const own = [env['PYTHONPATH'] ?? '', workerFolder ?? ''].filter((path) => path !== '').join(delimiter);
  if (pythonHook !== undefined)
    return { PYTHONPATH: prependPythonPath(join(pythonHook.source, pythonHook.entry), own || undefined) };
  return own === '' ? {} : { PYTHONPATH: own };
}

/**
 * As the activation script of the environment sets it: `python3` and the programs of its packages come first.
 */
function pythonEnvironment(folder: string, { env }: EnvironmentOptions['spec']): Record<string, string> {
  return {
    PATH: [join(folder, 'bin'), env['PATH'] ?? searchPath()].join(delimiter),
    VIRTUAL_ENV: folder,
    PYTHONPYCACHEPREFIX: env['PYTHONPYCACHEPREFIX'] ?? bytecodeCache(folder),
  };
}

/** The Node that runs Berth comes first: handlers are written for it. */
function searchPath(): string {
  return [dirname(process.execPath), process.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin'].join(delimiter);
}

function firstHttpPort(
  { ports: declared }: Pick<InstanceSpec, 'ports'>,
  ports: EnvironmentOptions['ports'],
): Record<string, string> {
  const first = declared.find(({ protocol }) => protocol === 'http');
  const mapped = ports.find(({ port }) => port === first?.port);
  return mapped === undefined ? {} : { PORT: String(mapped.hostPort) };
}

function portVariables(
  { ports: declared }: Pick<InstanceSpec, 'ports'>,
  ports: EnvironmentOptions['ports'],
): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const { port, hostPort } of ports) {
    variables[`BERTH_PORT_${port}`] = String(hostPort);
    variables[`RUNPOD_TCP_PORT_${port}`] = String(hostPort);
    for (const { listenPortVariable } of declared.filter((entry) => entry.port === port))
      if (listenPortVariable !== undefined) variables[listenPortVariable] = String(hostPort);
  }
  return variables;
}

function gpuVariables(gpus: GpuAllocation | null, realGpus: boolean): Record<string, string> {
  if (gpus === null) return realGpus ? { CUDA_VISIBLE_DEVICES: '', NVIDIA_VISIBLE_DEVICES: 'void' } : {};
  const indexes = gpus.indexes.join(',');
  // The order of nvidia-smi; CUDA's default is fastest first.
  return { CUDA_DEVICE_ORDER: 'PCI_BUS_ID', CUDA_VISIBLE_DEVICES: indexes, NVIDIA_VISIBLE_DEVICES: indexes };
}

/** Names that a shell does not pass on to its children. */
export function namesInvalidInShell(env: Readonly<Record<string, string>>): string[] {
  return Object.keys(env).filter((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
}
