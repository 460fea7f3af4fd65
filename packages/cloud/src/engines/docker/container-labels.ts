import type { GpuAllocation } from '../gpu-allocator.ts';
import type { InstanceVolume } from '../instance.ts';

/** Labels of each container: its owner, and what the daemon does not store. */
const INSTALLATION = 'berth.installation';
const INSTANCE = 'berth.instance';
const IMAGE = 'berth.image';
const GPUS = 'berth.gpus';
const DISK = 'berth.disk';
/** Prefix of the instance's own labels. It separates them from labels of the image. */
const INSTANCE_LABEL_PREFIX = 'berth.label.';

/** How much an instance may write. */
export interface ContainerDisk {
  /** To its own disk; missing if that is not limited. */
  sizeInGb?: number;
  /** The volumes that it may write to, by their path inside. */
  volumes: Readonly<Record<string, InstanceVolume>>;
}

export interface ContainerLabels {
  installation: string;
  id: string;
  /** As requested. */
  image: string;
  gpus: GpuAllocation | null;
  /** Missing in containers of earlier versions. */
  disk?: ContainerDisk;
  labels: Readonly<Record<string, string>>;
}

export function writeLabels({
  installation,
  id,
  image,
  gpus,
  disk,
  labels,
}: ContainerLabels): Record<string, string> {
  return {
    [INSTALLATION]: installation,
    [INSTANCE]: id,
    [IMAGE]: image,
    ...(gpus !== null && { [GPUS]: JSON.stringify(gpus) }),
    ...(disk !== undefined && { [DISK]: JSON.stringify(disk) }),
    ...Object.fromEntries(
      Object.entries(labels).map(([name, value]) => [`${INSTANCE_LABEL_PREFIX}${name}`, value]),
    ),
  };
}

export function readLabels(written: Readonly<Record<string, string>>): ContainerLabels {
  const gpus = written[GPUS];
  const disk = written[DISK];
  return {
    installation: written[INSTALLATION] ?? '',
    id: written[INSTANCE] ?? '',
    image: written[IMAGE] ?? '',
    gpus: gpus === undefined ? null : (JSON.parse(gpus) as GpuAllocation),
    ...(disk !== undefined && { disk: JSON.parse(disk) as ContainerDisk }),
    labels: Object.fromEntries(
      Object.entries(written).flatMap(([name, value]) =>
        name.startsWith(INSTANCE_LABEL_PREFIX) ? [[name.slice(INSTANCE_LABEL_PREFIX.length), value]] : [],
      ),
    ),
  };
}

/** For objects other than containers, such as networks. */
export function ownershipLabel(installation: string): Record<string, string> {
  return { [INSTALLATION]: installation };
}

/** Selects the containers of one installation. */
export function ownershipFilter(installation: string): { label: [string] } {
  return { label: [`${INSTALLATION}=${installation}`] };
}
