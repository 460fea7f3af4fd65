import type { ChecksumName } from '../../support/checksums.ts';

const PREFIX = 'x-amz-checksum-';
const NAMES = ['crc32', 'crc32c', 'crc64nvme', 'sha1', 'sha256'] as const satisfies ChecksumName[];

/** The checksum that each header carries, in base64. */
export const CHECKSUM_HEADERS: ReadonlyMap<string, ChecksumName> = new Map(
  NAMES.map((name) => [PREFIX + name, name]),
);
