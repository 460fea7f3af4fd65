import { foreignImageReason } from '../images/local-image-names.ts';
import { containerFindings, nameFindings, volumeSizeFindings } from '../templates/template-rules.ts';
import type { HardwareRequest } from '../placement/pod-placement.ts';
import type { Pod } from './pod-record.ts';
import { GPU_COUNT, MAX_POD_ENV_VARIABLES } from '../limits.ts';
const INJECTED_VARIABLES = ['JUPYTER_PASSWORD', 'PUBLIC_KEY'];

/** Everything that is wrong with a pod by itself, in words that say what to change. */
export function podFindings(pod: Pod): string[] {
  const { volumeSize, volumePath, networkVolumeId, bidPerGpu, interruptible } = pod;
  const findings = [
    ...nameFindings(pod.name),
    ...containerFindings(pod),
    ...[foreignImageReason(pod.accountId, pod.image)].filter((finding) => finding !== undefined),
  ];
  const variables = Object.keys(pod.env).filter((name) => !INJECTED_VARIABLES.includes(name)).length;
  if (variables > MAX_POD_ENV_VARIABLES)
    findings.push(`a pod may have at most ${MAX_POD_ENV_VARIABLES} environment variables, got ${variables}`);
  findings.push(...volumeSizeFindings(volumeSize));
  if (volumeSize > 0 && networkVolumeId !== null)
    findings.push('a pod has a volume disk of its own or a network volume, not both');
  if ((volumeSize > 0 || networkVolumeId !== null) && !isMountPath(volumePath))
    findings.push(
      'the mount path must be an absolute path other than /, for example /workspace, got ' +
        `${JSON.stringify(volumePath.slice(0, 64))}`,
    );
  if (bidPerGpu !== null && (!Number.isFinite(bidPerGpu) || bidPerGpu < 0))
    findings.push('the bid must be a number of US dollars of at least 0');
  if (bidPerGpu !== null && !interruptible) findings.push('only an interruptible pod has a bid');
  return findings;
}

export function hardwareFindings({ compute, gpuCount, cpuFlavors }: HardwareRequest): string[] {
  if (compute === 'CPU') return cpuFlavors.length === 0 ? ['a CPU pod needs a CPU flavour'] : [];
  const { minimum, maximum } = GPU_COUNT;
  return Number.isInteger(gpuCount) && gpuCount >= minimum && gpuCount <= maximum
    ? []
    : [`gpuCount (gpu.count) must be a whole number from ${minimum} to ${maximum}, got ${gpuCount}`];
}

/** What cannot become of a pod that is there already: disks only grow. */
export function podChangeFindings(before: Pod, after: Pod): string[] {
  const disks = [
    ['container disk', before.containerDisk, after.containerDisk],
    ['volume disk', before.volumeSize, after.volumeSize],
  ] as const;
  return disks
    .filter(([, had, wanted]) => wanted < had)
    .map(
      ([disk, had, wanted]) => `a ${disk} cannot shrink: it has ${had} GB and ${wanted} GB were asked for`,
    );
}

/**
 * What an instance is made of. Where one of these changes, a new instance is needed; that a volume grows
 * needs none.
 */
const INSTANCE_FIELDS = [
  'image',
  'args',
  'containerDisk',
  'ports',
  'env',
  'registryId',
  'volumePath',
] as const satisfies (keyof Pod)[];

export function needsNewInstance(before: Pod, after: Pod): boolean {
  return (
    after.volumeSize > 0 !== before.volumeSize > 0 ||
    INSTANCE_FIELDS.some((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]))
  );
}

function isMountPath(path: string): boolean {
  return path.startsWith('/') && !path.split('/').includes('..') && /[^/]/.test(path) && !path.includes('\0');
}

/** A GPU pod may be started with zero GPUs, to reach its data. */
export function gpuCountFindings({ compute }: Pod, gpuCount: number): string[] {
  if (!Number.isInteger(gpuCount) || gpuCount < 0)
    return [`gpuCount must be a whole number of at least 0, got ${gpuCount}`];
  return compute === 'CPU' && gpuCount > 0
    ? ['gpuCount must be 0 for a CPU pod; the compute type cannot be changed']
    : [];
}
