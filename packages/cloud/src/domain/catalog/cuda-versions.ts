/** The CUDA versions that a definition may name, newest first. */
export const CUDA_VERSIONS: readonly string[] = [
  '13.0',
  '12.9',
  '12.8',
  '12.7',
  '12.6',
  '12.5',
  '12.4',
  '12.3',
  '12.2',
  '12.1',
  '12.0',
  '11.8',
];

/**
 * By number, part by part: 12.11 is newer than 12.2. A bare major stands for its first release.
 * Negative when `a` is older, zero when they are the same.
 */
export function compareCudaVersions(a: string, b: string): number {
  const [majorA, minorA] = parseVersion(a);
  const [majorB, minorB] = parseVersion(b);
  return majorA === majorB ? minorA - minorB : majorA - majorB;
}

function parseVersion(version: string): [major: number, minor: number] {
  const [major = '', minor = '0'] = version.split('.');
  return [Number(major), Number(minor)];
}
