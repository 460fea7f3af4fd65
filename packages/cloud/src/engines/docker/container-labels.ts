import type { GpuAllocation } from '../gpu-allocator.ts';

/** What is written on each container: whose it is, and what the daemon would not tell later. */
const INSTALLATION = 'berth.installation';
const INSTANCE = 'berth.instance';
const IMAGE = 'berth.image';
const GPUS = 'berth.gpus';
/** Before the names of the instance's own labels. An image may bring labels too, which are not among those. */
const INSTANCE_LABEL_PREFIX = 'berth.label.';

export interface ContainerLabels {
  installation: string;
  id: string;
  /** As it was asked for. */
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

/** For what is no container. */
export function ownershipLabel(installation: string): Record<string, string> {
  return { [INSTALLATION]: installation };
}

/** Finds the containers of one installation. */
export function ownershipFilter(installation: string): { label: [string] } {
  return { label: [`${INSTALLATION}=${installation}`] };
}
