import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { fileArchive } from '../docker-test-image.mjs';

export interface NamedImage {
  name: string;
  config: ImageConfig;
}

export interface ImageConfig {
  Cmd?: readonly string[];
  Entrypoint?: readonly string[];
  Env?: readonly string[];
  WorkingDir?: string;
  User?: string;
}

/**
 * Writes images of the same layers, as `docker save` does, so that containerd can import them. No container
 * engine is needed.
 */
export function writeImageTar(path: string, layers: readonly Buffer[], images: readonly NamedImage[]): void {
  const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
  const digests = layers.map(sha256);
  const described = images.map(({ name, config }) => {
    const description = Buffer.from(
      JSON.stringify({
        architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
        os: 'linux',
        config,
        rootfs: { type: 'layers', diff_ids: digests.map((digest) => `sha256:${digest}`) },
      }),
    );
    return { name, description, file: `${sha256(description)}.json` };
  });
  const manifest = described.map(({ name, file }) => ({
    Config: file,
    RepoTags: [name],
    Layers: digests.map((digest) => `${digest}.tar`),
  }));
  writeFileSync(
    path,
    Buffer.concat([
      ...fileArchive({
        'manifest.json': Buffer.from(JSON.stringify(manifest)),
        ...Object.fromEntries(described.map(({ file, description }) => [file, description])),
        ...Object.fromEntries(layers.map((layer, index) => [`${digests[index]}.tar`, layer])),
      }),
    ]),
  );
}
