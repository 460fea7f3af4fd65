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
 * Writes an image with one layer, as `docker save` does, so that containerd can import it. No container
 * engine is needed.
 */
export function writeImageTar(path: string, name: string, layer: Buffer, config: ImageConfig): void {
  const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
  const digest = sha256(layer);
  const description = Buffer.from(
    JSON.stringify({
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
    }),
  );
  const configName = `${sha256(description)}.json`;
  const manifest = [{ Config: configName, RepoTags: [name], Layers: [`${digest}.tar`] }];
  writeFileSync(
    path,
    Buffer.concat([
      ...fileArchive({
        'manifest.json': Buffer.from(JSON.stringify(manifest)),
        [configName]: description,
        [`${digest}.tar`]: layer,
      }),
    ]),
  );
}
