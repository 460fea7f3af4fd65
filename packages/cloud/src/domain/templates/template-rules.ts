import type { Container, Template } from '../records.ts';
import { BerthError } from '../../support/errors.ts';
import { parseArgs } from './container-command.ts';
import { portFindings } from './container-ports.ts';

export const MAX_NAME_LENGTH = 191;
/** Far beyond any disk, and well inside what both databases count with. */
export const MAX_DISK_GB = 1_000_000;
/** No more than this many are told at once: a list of ports may hold a mistake in each of its thousands. */
const MAX_FINDINGS = 20;

/** Everything that is wrong with a template, in words that say what to change. */
export function templateFindings(template: Template): string[] {
  const { volumeSize, volumePath, serverless } = template;
  const findings = [...nameFindings(template.name), ...containerFindings(template)];
  if (!isDiskSize(volumeSize))
    findings.push(`volume size must be a whole number of GB from 0 to ${MAX_DISK_GB}, got ${volumeSize}`);
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
  if (!isDiskSize(containerDisk))
    findings.push(
      `container disk must be a whole number of GB from 0 to ${MAX_DISK_GB}, got ${containerDisk}`,
    );
  return [...findings, ...portFindings(ports), ...envFindings(env), ...argsFindings(args)];
}

export function cudaVersionFindings(versions: readonly string[]): string[] {
  return versions
    .filter((version) => !/^\d+\.\d+$/.test(version))
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

function isDiskSize(size: number): boolean {
  return Number.isInteger(size) && size >= 0 && size <= MAX_DISK_GB;
}
