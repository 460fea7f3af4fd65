import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { SnapshotUrls } from '../auth/snapshot-urls.ts';
import type { DeployedFolders } from '../engines/deployed-folders.ts';
import type { Config } from '../support/config/config.ts';
import { ruleError } from '../support/errors.ts';

const SNAPSHOT = /^local\/([a-z0-9][a-z0-9._-]*):([0-9a-f]{12})$/;
const PYTHON_FILES = ['handler.py', 'requirements.txt', 'pyproject.toml'];

/** How folders of `berth deploy` run in containers; undefined where no runner image is set. */
export function createDeployedFolders(
  { runner, data }: Pick<Config, 'runner' | 'data'>,
  urls: SnapshotUrls,
  serverUrl: () => Promise<string>,
): DeployedFolders | undefined {
  if (runner.image === '') return undefined;
  const find = (image: string): { name: string; digest: string; folder: string } | undefined => {
    const [, name, digest] = SNAPSHOT.exec(image) ?? [];
    if (name === undefined || digest === undefined) return undefined;
    const folder = join(resolve(data), 'images', name, digest);
    return existsSync(folder) ? { name, digest, folder } : undefined;
  };
  const problem = (image: string): string | undefined =>
    find(image) === undefined
      ? `${JSON.stringify(image)} is no folder that berth deploy uploaded here, so no container can run it`
      : undefined;
  return {
    problem,
    resolve: async (image) => {
      const found = find(image);
      if (found === undefined) throw ruleError(problem(image) ?? '');
      const usesPython = PYTHON_FILES.some((file) => existsSync(join(found.folder, file)));
      return {
        runnerImage: usesPython && runner.pythonImage !== '' ? runner.pythonImage : runner.image,
        url: urls.urlFor(await serverUrl(), found.name, found.digest),
      };
    },
  };
}
