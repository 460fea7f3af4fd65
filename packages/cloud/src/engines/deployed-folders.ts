import type { InstanceSpec } from './instance.ts';

/** The runner fetches the snapshot from here. */
export const SNAPSHOT_URL_VARIABLE = 'BERTH_SNAPSHOT_URL';
/** The name of the image, for messages of the runner. */
export const SNAPSHOT_IMAGE_VARIABLE = 'BERTH_SNAPSHOT_IMAGE';

/**
 * How engines of containers run folders that `berth deploy` uploaded: in a runner image, which fetches them.
 */
export interface DeployedFolders {
  /** Why this folder cannot run in a container; undefined if it can. */
  problem(image: string): string | undefined;
  /** The image that runs the folder, and the URL of its archive. */
  resolve(image: string): Promise<{ runnerImage: string; url: string }>;
}

export function isDeployedFolder(image: string): boolean {
  return image.startsWith('local/');
}

/**
 * The container that runs a deployed folder. As elsewhere, the command of the spec comes before the folder's.
 */
export async function runnerSpec(spec: InstanceSpec, folders: DeployedFolders): Promise<InstanceSpec> {
  const { runnerImage, url } = await folders.resolve(spec.image);
  return {
    ...spec,
    image: runnerImage,
    command: { entrypoint: ['berth', 'runner'], cmd: [...spec.command.entrypoint, ...spec.command.cmd] },
    env: { ...spec.env, [SNAPSHOT_URL_VARIABLE]: url, [SNAPSHOT_IMAGE_VARIABLE]: spec.image },
  };
}
