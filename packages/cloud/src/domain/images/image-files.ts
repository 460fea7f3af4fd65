import { createHash } from 'node:crypto';
import { MAX_IMAGE_FILES, MAX_IMAGE_PATH_LENGTH, MAX_FINDINGS } from '../limits.ts';

/** One file of an image. */
export interface ImageFile {
  /** Below the folder, with slashes: `lib/model.ts`. */
  path: string;
  /** May be run as a program. Nothing else of a file's mode is kept. */
  executable: boolean;
  content: Uint8Array;
}
/** As file systems have it, in bytes. */
const MAX_PATH_SEGMENT_BYTES = 255;

const DIGEST_LENGTH = 12;
export const IMAGE_DIGEST_PATTERN = /^[0-9a-f]{12}$/;

/** The same files have the same digest, in whatever order they come. */
export function imageDigest(files: readonly ImageFile[]): string {
  const hash = createHash('sha256');
  for (const { path, executable, content } of files.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
    hash.update(`${path}\0${executable ? 'x' : '-'}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex').slice(0, DIGEST_LENGTH);
}

/**
 * What is wrong with the paths of these files. Files without findings stay below the folder that they are
 * written to.
 */
export function imageFileFindings(files: readonly Pick<ImageFile, 'path'>[]): string[] {
  if (files.length === 0) return ['an image needs at least one file'];
  if (files.length > MAX_IMAGE_FILES)
    return [`an image has at most ${MAX_IMAGE_FILES} files, got ${files.length}`];
  const findings = files.flatMap(({ path }) => pathFindings(path));
  return (findings.length > 0 ? findings : pathConflicts(files)).slice(0, MAX_FINDINGS);
}

function pathFindings(path: string): string[] {
  const segments = path.split('/');
  const shown = JSON.stringify(path.slice(0, 80));
  if (path === '' || path.startsWith('/') || /^[A-Za-z]:/.test(path))
    return [`the path ${shown} must be below the folder, such as lib/model.ts`];
  if (/[\\\p{Cc}]/u.test(path)) return [`the path ${shown} must not hold a backslash or a control character`];
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..'))
    return [`the path ${shown} must not have an empty part, "." or ".."`];
  if (
    path.length > MAX_IMAGE_PATH_LENGTH ||
    segments.some((segment) => Buffer.byteLength(segment) > MAX_PATH_SEGMENT_BYTES)
  ) {
    return [
      `the path ${shown} is too long: at most ${MAX_IMAGE_PATH_LENGTH} characters, and ` +
        `${MAX_PATH_SEGMENT_BYTES} bytes in each part`,
    ];
  }
  return [];
}

/** Two files at one place, or a file where another needs a folder. */
function pathConflicts(files: readonly Pick<ImageFile, 'path'>[]): string[] {
  const paths = new Set(files.map(({ path }) => path));
  const twice = files.length > paths.size ? ['two files have the same path'] : [];
  return [
    ...twice,
    ...[...paths].flatMap((path) =>
      parents(path)
        .filter((parent) => paths.has(parent))
        .map(
          (parent) =>
            `${JSON.stringify(parent.slice(0, 80))} is a file and cannot hold ${JSON.stringify(path.slice(0, 80))}`,
        ),
    ),
  ];
}

function parents(path: string): string[] {
  const segments = path.split('/');
  return segments.slice(1).map((_, index) => segments.slice(0, index + 1).join('/'));
}
