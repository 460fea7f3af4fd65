import { imageDigest } from '../../domain/images/image-files.ts';
import { Readable } from 'node:stream';
import type { ApiClient } from '../api-client.ts';
import { CliError } from '../cli.errors.ts';
import type { OutputStream } from '../cli-context.ts';
import type { Options } from '../command-definition.ts';
import type { CopyProgress } from '../copy-progress.ts';
import { writeLine } from '../terminal-text.ts';
import { formatBytes } from '../../support/byte-size.ts';
import { imageNameFor, readSourceFolder } from './source-folder.ts';
import type { SourceFolder } from './source-folder.ts';

/** Uploading a large folder over a slow connection takes long. */
const UPLOAD_TIMEOUT_MS = 600_000;
const EXECUTABLE_MODE = 0o755;
const PLAIN_MODE = 0o644;

export interface UploadedImage {
  image: string;
  digest: string;
}

/** Smaller uploads are over before anybody looks. */
const PERCENTAGE_FROM_BYTES = 1_000_000;
const PIECE_BYTES = 64 * 1024;

export const quietOption = {
  quiet: { kind: 'switch', short: 'q', description: 'Do not show progress on the standard error.' },
} as const satisfies Options;

/** Reports progress, also where the output is piped: nothing waits in silence. */
export type ReportProgress = (line: string) => void;

export function progressReporter(stderr: OutputStream, { quiet }: { quiet: boolean }): ReportProgress {
  return (line) => {
    if (!quiet) writeLine(stderr, line);
  };
}

/** Reads a folder and always reports what is left out. */
export async function snapshotFolder(
  path: string,
  stderr: OutputStream,
): Promise<SourceFolder & { digest: string }> {
  const folder = await readSourceFolder(path);
  const { skipped } = folder;
  if (skipped.length > 0) {
    const more = skipped.length > 3 ? ` and ${skipped.length - 3} more` : '';
    writeLine(
      stderr,
      `berth: left out, since it leads out of ${path} or is no file: ${skipped.slice(0, 3).join(', ')}${more}`,
    );
  }
  return { ...folder, digest: imageDigest(folder.files) };
}

/** Creates an image from a folder. Files that the server already has are not sent again. */
export async function uploadFolder(
  client: ApiClient,
  name: string,
  folder: SourceFolder & { digest: string },
  say: ReportProgress,
  progress?: CopyProgress,
): Promise<UploadedImage> {
  const imageName = imageNameFor(name);
  const { rows } = await client.list<UploadedImage & { name: string }>('/v2/images', 'images');
  const known = rows.find((image) => image.name === imageName && image.digest === folder.digest);
  const files = folder.files.length === 1 ? '1 file' : `${folder.files.length} files`;
  if (known !== undefined) {
    say(`nothing has changed since ${known.image}: ${files}, ${formatBytes(folder.size)}`);
    return known;
  }
  say(`uploading ${files}, ${formatBytes(folder.size)}`);
  const body = {
    name: imageName,
    files: folder.files.map(({ path, executable, content }) => ({
      path,
      mode: executable ? EXECUTABLE_MODE : PLAIN_MODE,
      data: Buffer.from(content).toString('base64'),
    })),
  };
  const stored = await client.post<UploadedImage>('/v2/images', withProgress(body, progress), {
    timeoutMs: UPLOAD_TIMEOUT_MS,
    headers: { 'content-type': 'application/json' },
  });
  progress?.finish();
  if (stored.digest !== folder.digest)
    throw new CliError(
      `${client.url} stored something else than was sent; is it a Berth server of this version?`,
    );
  return stored;
}

/** A large body is sent piece by piece, and each is counted as it goes. */
function withProgress(body: object, progress: CopyProgress | undefined): object {
  if (progress === undefined) return body;
  const content = Buffer.from(JSON.stringify(body));
  if (content.length < PERCENTAGE_FROM_BYTES) return body;
  progress.addTotal(1, content.length);
  return Readable.from(pieces(content, progress), { objectMode: false });
}

function* pieces(content: Buffer, progress: CopyProgress): Generator<Buffer> {
  for (let at = 0; at < content.length; at += PIECE_BYTES) {
    const piece = content.subarray(at, at + PIECE_BYTES);
    yield piece;
    progress.bytes(piece.length);
  }
}
