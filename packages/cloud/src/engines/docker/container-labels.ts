import type { GpuAllocation } from '../gpu-allocator.ts';

/** Labels of each container: its owner, and what the daemon does not store. */
const INSTALLATION = 'berth.installation';
const INSTANCE = 'berth.instance';
const IMAGE = 'berth.image';
const GPUS = 'berth.gpus';
/** Prefix of the instance's own labels. It separates them from labels of the image. */
const INSTANCE_LABEL_PREFIX = 'berth.label.';

export interface ContainerLabels {
  installation: string;
  id: string;
  /** As requested. */
  image: string;
  gpus: GpuAllocation | null;
  labels: Readonly<Record<string, string>>;
}

export function writeLabels({
  installation,
  id,
  image,
  gpus,
  labels,
}: ContainerLabels): Record<string, string> {
  return {
    [INSTALLATION]: installation,
    [INSTANCE]: id,
    [IMAGE]: image,
    ...(gpus !== null && { [GPUS]: JSON.stringify(gpus) }),
    ...Object.fromEntries(
      Object.entries(labels).map(([name, value]) => [`${INSTANCE_LABEL_PREFIX}${name}`, value]),
    ),
  };
}

export function readLabels(written: Readonly<Record<string, string>>): ContainerLabels {
  const gpus = written[GPUS];
  return {
    installation: written[INSTALLATION] ?? '',
    id: written[INSTANCE] ?? '',
    image: written[IMAGE] ?? '',
    gpus: gpus === undefined ? null : (JSON.parse(gpus) as GpuAllocation),
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
