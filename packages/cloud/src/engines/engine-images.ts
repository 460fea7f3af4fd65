import type { InstanceEngine } from './engine.ts';
import type { InstanceSpec } from './instance.ts';

/**
 * Why none of the engines finds the image; undefined if one does, or if one that could run it cannot tell.
 */
export async function imageLookupProblem(
  engines: Iterable<InstanceEngine>,
  image: string,
  registry: InstanceSpec['registry'],
): Promise<string | undefined> {
  let found: string | undefined;
  for (const engine of new Set(engines)) {
    if (engine.imageProblem(image) !== undefined) continue;
    const problem = await engine.imageLookupProblem?.(image, registry);
    if (problem === undefined) return undefined;
    found ??= problem;
  }
  return found;
}

/** Deletes what the engines fetched or made themselves, if it is not in use and was not since this time. */
export async function pruneImages(
  engines: Iterable<InstanceEngine>,
  unusedSince: number,
  inUse: ReadonlySet<string>,
): Promise<string[]> {
  const removed = new Set<string>();
  for (const engine of new Set(engines))
    for (const image of (await engine.pruneImages?.(unusedSince, inUse)) ?? []) removed.add(image);
  return [...removed];
}
