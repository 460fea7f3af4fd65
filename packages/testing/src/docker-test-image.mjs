// Makes the image that the Docker suites run: the Node of this machine, a shell and a few small
// programs, with the libraries that they need. Nothing is fetched from anywhere.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { basename, delimiter, isAbsolute, join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { DockerClient } from '../../cloud/src/engines/docker/client/docker-client.ts';

export const PROGRAMS = [
  'sh',
  'cat',
  'env',
  'grep',
  'head',
  'id',
  'kill',
  'ls',
  'mkdir',
  'printf',
  'rm',
  'sleep',
  'stty',
  'touch',
  'true',
  'tty',
];
const BLOCK = 512;

/**
 * @param {string} host where the daemon answers
 * @param {string} name with a tag, and below localhost/ where Podman shall find it too
 * @param {{ cmd?: string[], entrypoint?: string[], volume?: string, programs?: string[] }} [own] what the
 *   image brings along
 * @returns {Promise<{ name: string, remove(): Promise<void> }>}
 */
export async function createTestImage(host, name, own = {}) {
  const changes = [
    'ENV PATH=/bin',
    'WORKDIR /work',
    `CMD ${JSON.stringify(own.cmd ?? ['sh', '-c', 'echo the command of the image; sleep 600'])}`,
  ];
  if (own.entrypoint !== undefined) changes.push(`ENTRYPOINT ${JSON.stringify(own.entrypoint)}`);
  if (own.volume !== undefined) changes.push(`VOLUME ${JSON.stringify([own.volume])}`);
  return importImage(
    host,
    name,
    Readable.from(imageArchive([...PROGRAMS, 'node', ...(own.programs ?? [])])),
    changes,
  );
}

/**
 * Makes an image of the archive of a file system.
 * @param {string} host where the daemon answers
 * @param {string} name with a tag
 * @param {Readable} archive
 * @param {readonly string[]} changes lines of a Dockerfile
 * @returns {Promise<{ name: string, remove(): Promise<void> }>}
 */
export async function importImage(host, name, archive, changes) {
  const docker = new DockerClient(host);
  const answer = await docker.stream('POST', '/images/create', {
    query: { fromSrc: '-', changes },
    upload: archive,
  });
  const messages = await text(answer);
  const id = /"status":"(sha256:[0-9a-f]+)"/.exec(messages)?.[1];
  if (id === undefined) throw new Error(`the image could not be made: ${messages}`);
  // Not every daemon gives the name at once.
  const [repo, tag] = [name.slice(0, name.lastIndexOf(':')), name.slice(name.lastIndexOf(':') + 1)];
  await docker.post(`/images/${id}/tag`, { query: { repo, tag } });
  return { name, remove: async () => void (await docker.delete(`/images/${name}`, { force: true })) };
}

/**
 * The file system of an image with these programs, as a tar archive.
 * @param {readonly string[]} names of programs on this machine, or their paths
 */
export function* imageArchive(names) {
  for (const folder of ['bin/', 'dev/', 'etc/', 'proc/', 'tmp/', 'work/'])
    yield header(folder, 0, folder === 'tmp/' ? 0o1777 : 0o755, '5');
  const programs = names
    .flatMap((name) => findProgram(name) ?? [])
    .map((path) => ({ path, place: `bin/${basename(path)}` }));
  const libraries = new Set(programs.flatMap(({ path }) => librariesOf(path)));
  for (const { path, place } of programs) yield* file(place, readFileSync(path), 0o755);
  for (const path of libraries) yield* file(path.slice(1), readFileSync(path), 0o755);
  yield* file('etc/nsswitch.conf', Buffer.from('hosts: files dns\n'), 0o644);
  yield* file(
    'etc/passwd',
    Buffer.from('root:x:0:0:root:/:/bin/sh\nnode:x:1000:1000:node:/tmp:/bin/sh\n'),
    0o644,
  );
  yield Buffer.alloc(2 * BLOCK);
}

/**
 * A few files as a tar archive, such as the context of a Dockerfile.
 * @param {Readonly<Record<string, Buffer>>} files
 */
export function* fileArchive(files) {
  for (const [name, content] of Object.entries(files)) yield* file(name, content, 0o644);
  yield Buffer.alloc(2 * BLOCK);
}

/** @param {string} name */
function findProgram(name) {
  if (name === 'node') return process.execPath;
  if (isAbsolute(name)) return name;
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .concat('/usr/bin', '/bin')
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
}

/**
 * What the loader brings together for a program, the loader itself included. A static program needs nothing.
 * @param {string} path
 */
function librariesOf(path) {
  try {
    const list = execFileSync('ldd', [realpathSync(path)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return [...list.matchAll(/(\/\S+) \(0x/g)].map(([, library]) => /** @type {string} */ (library));
  } catch {
    return [];
  }
}

/**
 * @param {string} name
 * @param {Buffer} content
 * @param {number} mode
 */
function* file(name, content, mode) {
  yield header(name, content.length, mode, '0');
  yield content;
  yield Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK);
}

/**
 * @param {string} name
 * @param {number} size
 * @param {number} mode
 * @param {'0' | '5'} type a file or a folder
 */
function header(name, size, mode, type) {
  const block = Buffer.alloc(BLOCK);
  const octal = (/** @type {number} */ value, /** @type {number} */ length) =>
    `${value.toString(8).padStart(length - 1, '0')}\0`;
  block.write(name, 0, 100);
  block.write(octal(mode, 8), 100);
  block.write(octal(0, 8), 108);
  block.write(octal(0, 8), 116);
  block.write(octal(size, 12), 124);
  block.write(octal(0, 12), 136);
  block.write('        ', 148);
  block.write(type, 156);
  block.write('ustar\x0000', 257);
  block.write(
    `${octal(
      block.reduce((sum, byte) => sum + byte, 0),
      7,
    )} `,
    148,
  );
  return block;
}
