import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { fileArchive } from '../docker-test-image.mjs';

export interface ImageConfig {
  Cmd?: readonly string[];
  Entrypoint?: readonly string[];
  Env?: readonly string[];
  WorkingDir?: string;
}

/**
 * Writes an image with these layers, as `docker save` does, so that containerd can import it. No container
 * engine is needed.
 */
export function writeImageTar(
  path: string,
  name: string,
  layers: readonly Buffer[],
  config: ImageConfig,
): void {
  const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
  const digests = layers.map(sha256);
  const description = Buffer.from(
    JSON.stringify({
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: digests.map((digest) => `sha256:${digest}`) },
    }),
  );
  const configName = `${sha256(description)}.json`;
  const manifest = [
    { Config: configName, RepoTags: [name], Layers: digests.map((digest) => `${digest}.tar`) },
  ];
  writeFileSync(
    path,
    Buffer.concat([
      ...fileArchive({
        'manifest.json': Buffer.from(JSON.stringify(manifest)),
        [configName]: description,
        ...Object.fromEntries(layers.map((layer, index) => [`${digests[index]}.tar`, layer])),
      }),
    ]),
  );
}
