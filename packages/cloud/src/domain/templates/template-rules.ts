import type { Container, Template } from '../records.ts';
import { BerthError } from '../../support/errors.ts';
import { parseArgs } from './container-command.ts';
import { portFindings } from './container-ports.ts';
import {
  MAX_NAME_LENGTH,
  MAX_FINDINGS,
  CUDA_VERSION_PATTERN,
  MAX_IMAGE_REFERENCE_LENGTH,
  DISK_GB,
} from '../limits.ts';

/** Everything that is wrong with a template, in words that say what to change. */
export function templateFindings(template: Template): string[] {
  const { volumeSize, volumePath, serverless } = template;
  const findings = [...nameFindings(template.name), ...containerFindings(template)];
  findings.push(...volumeSizeFindings(volumeSize));
  if (serverless && volumeSize !== 0)
    findings.push(`volume size must be 0 for a serverless template, got ${volumeSize}`);
  if (volumePath !== '' && !volumePath.startsWith('/'))
    findings.push('volume mount path must be an absolute path, for example /workspace');
  return [...findings, ...cudaVersionFindings(template.allowedCudaVersions)];
}

export function nameFindings(name: string): string[] {
  if (name.trim() === '') return ['name must not be empty'];
  return name.length > MAX_NAME_LENGTH ? [`name must be at most ${MAX_NAME_LENGTH} characters long`] : [];
}

/** What is wrong with a container, whatever it belongs to. */
export function containerFindings({ image, args, containerDisk, ports, env }: Container): string[] {
  const findings: string[] = [];
  if (image === '' || /\s/.test(image))
    findings.push('image must be an image name without spaces, for example python:3.12');
  if (image.length > MAX_IMAGE_REFERENCE_LENGTH)
    findings.push(`image must be at most ${MAX_IMAGE_REFERENCE_LENGTH} characters long, got ${image.length}`);
  if (!isDiskSize(containerDisk))
    findings.push(
      `container disk must be a whole number of GB from ${DISK_GB.minimum} to ${DISK_GB.maximum}, got ${containerDisk}`,
    );
  return [...findings, ...portFindings(ports), ...envFindings(env), ...argsFindings(args)];
}

const CUDA_VERSION = new RegExp(CUDA_VERSION_PATTERN);

export function cudaVersionFindings(versions: readonly string[]): string[] {
  return versions
    .filter((version) => !CUDA_VERSION.test(version))
    .map(
      (version) =>
        `CUDA version ${JSON.stringify(version.slice(0, 16))} must be major.minor, for example 12.8`,
    );
}

export function checkTemplate(template: Template): Template {
  const findings = templateFindings(template).slice(0, MAX_FINDINGS);
  if (findings.length > 0) throw new BerthError('rule', findings.join('; '), { details: findings });
  return template;
}

export function envFindings(env: Record<string, string>): string[] {
  return Object.keys(env)
    .filter((key) => key === '' || key.includes('='))
    .map(
      (key) =>
        `environment variable name ${JSON.stringify(key.slice(0, 32))} must not be empty or contain "="`,
    );
}

function argsFindings(args: string): string[] {
  try {
    parseArgs(args);
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

/** What is wrong with the size of a disk that outlives restarts. */
export function volumeSizeFindings(size: number): string[] {
  return isDiskSize(size)
    ? []
    : [`volume size must be a whole number of GB from ${DISK_GB.minimum} to ${DISK_GB.maximum}, got ${size}`];
}

function isDiskSize(size: number): boolean {
  return Number.isInteger(size) && size >= DISK_GB.minimum && size <= DISK_GB.maximum;
}
