import { digestOf } from '../../resources/images/files.ts';
import type { Client } from '../client.ts';
import { Failure } from '../failure.ts';
import type { Writable } from '../surroundings.ts';
import { imageNameFor, readFolder, shownSize } from './folder.ts';
import type { Folder } from './folder.ts';

/** A large folder over a slow line takes its time. */
const UPLOAD_WITHIN_MS = 600_000;
const EXECUTABLE_MODE = 0o755;
const PLAIN_MODE = 0o644;

export interface UploadedImage {
  image: string;
  digest: string;
}

/** Tells people how far it is; a script that reads the output sees nothing of it. */
export type Say = (line: string) => void;

export function sayOn(stderr: Writable, forPeople: boolean): Say {
  return (line) => {
    if (forPeople) stderr.write(`${line}\n`);
  };
}

/** Reads a folder and tells what of it stays behind, which is always worth knowing. */
export async function takeSnapshot(path: string, stderr: Writable): Promise<Folder & { digest: string }> {
  const folder = await readFolder(path);
  const { leftOut } = folder;
  if (leftOut.length > 0) {
    const more = leftOut.length > 3 ? ` and ${leftOut.length - 3} more` : '';
    stderr.write(
      `berth: left out, since it leads out of ${path} or is no file: ${leftOut.slice(0, 3).join(', ')}${more}\n`,
    );
  }
  return { ...folder, digest: digestOf(folder.files) };
}

/** Makes an image of a folder. What the server already has is not sent again. */
export async function uploadFolder(
  client: Client,
  name: string,
  folder: Folder & { digest: string },
  say: Say,
): Promise<UploadedImage> {
  const imageName = imageNameFor(name);
  const { rows } = await client.list<UploadedImage & { name: string }>('/v2/images', 'images');
  const known = rows.find((image) => image.name === imageName && image.digest === folder.digest);
  const files = folder.files.length === 1 ? '1 file' : `${folder.files.length} files`;
  if (known !== undefined) {
    say(`nothing has changed since ${known.image}: ${files}, ${shownSize(folder.size)}`);
    return known;
  }
  say(`uploading ${files}, ${shownSize(folder.size)}`);
  const body = {
    name: imageName,
    files: folder.files.map(({ path, executable, content }) => ({
      path,
      mode: executable ? EXECUTABLE_MODE : PLAIN_MODE,
      data: Buffer.from(content).toString('base64'),
    })),
  };
  const stored = await client.post<UploadedImage>('/v2/images', body, { within: UPLOAD_WITHIN_MS });
  if (stored.digest !== folder.digest)
    throw new Failure(
      `${client.url} stored something else than was sent; is it a Berth server of this version?`,
    );
  return stored;
}
