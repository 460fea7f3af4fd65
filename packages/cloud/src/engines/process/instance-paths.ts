import { resolve } from 'node:path';
import type { InstanceMount } from '../instance.ts';

/**
 * The folder of Berth that holds a path of an instance, and the names from there. Mounts are links below the
 * root, and an instance can replace them: so the saved mounts say where they lead.
 */
export function locateInInstance(
  names: readonly string[],
  root: string,
  mounts: readonly InstanceMount[] = [],
): { root: string; names: string[] } {
  const path = `/${names.join('/')}`;
  const [mount] = mounts
    .map(({ source, path: mounted }) => ({ source, mounted: resolve('/', mounted) }))
    .filter(({ mounted }) => path === mounted || path.startsWith(`${mounted}/`))
    .sort((one, other) => other.mounted.length - one.mounted.length);
  if (mount === undefined) return { root, names: [...names] };
  const depth = mount.mounted.split('/').filter((name) => name !== '').length;
  return { root: mount.source, names: names.slice(depth) };
}
