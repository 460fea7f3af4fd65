import { opendir } from 'node:fs/promises';
import type { BigIntStats } from 'node:fs';
import { isPermissionError } from '../../support/permission-error.ts';
import {
  withParentDirectory,
  resolveInside,
  isMissingPathError,
  lstatIfExists,
} from '../../support/directory-handle.ts';
import type { EntryLocation } from '../../support/directory-handle.ts';
import { compareObjectKeys, objectKeyProblem } from './object-key.ts';
import type { StoredObject } from './object-metadata.ts';

/**
 * The most names of a directory that are in memory at a time. A larger directory is read again for the next
 * names.
 */
const MAX_NAMES_IN_MEMORY = 1_000;
/** Files whose metadata is read concurrently. */
const STAT_CONCURRENCY = 64;

export interface ObjectListingQuery {
  prefix: string;
  /** Keys that contain this after the prefix are grouped into one prefix; empty for no grouping. */
  delimiter: string;
  /** The last key or prefix of the previous page; empty for the first page. */
  after: string;
  limit: number;
}

export interface ObjectListing {
  objects: StoredObject[];
  prefixes: string[];
  /** The value of `after` for the next page; undefined on the last page. */
  next: string | undefined;
}

export type DescribeObject = (key: string, file: BigIntStats) => Promise<StoredObject>;

interface FoundKey {
  key: string;
  /** The path names of its directory. */
  parent: readonly string[];
  name: string;
  folder: boolean;
}

/**
 * Lists objects and prefixes ordered by key. A symbolic link to a file of this volume is listed as that file.
 */
export async function listObjects(
  root: string,
  query: ObjectListingQuery,
  describe: DescribeObject,
): Promise<ObjectListing> {
  const objects: StoredObject[] = [];
  const prefixes: string[] = [];
  let lastListed = '';
  let batch: FoundKey[] = [];
  const flush = async (): Promise<void> => {
    objects.push(...(await describeAll(root, batch, describe)));
    batch = [];
  };
  const beginning = directoryOfPrefix(query.prefix);
  if (query.limit === 0 || beginning === undefined) return { objects, prefixes, next: undefined };
  for await (const found of keysBelow(root, beginning, query)) {
    const group = commonPrefixOf(found.key, query);
    if (group !== undefined && (group === prefixes.at(-1) || group === query.after)) continue;
    if (objects.length + batch.length + prefixes.length >= query.limit) {
      // Some entries may have been deleted since they were read: count only those that are returned.
      await flush();
      if (objects.length + prefixes.length >= query.limit) return { objects, prefixes, next: lastListed };
    }
    lastListed = group ?? found.key;
    if (group !== undefined) prefixes.push(group);
    else batch.push(found);
    if (batch.length >= STAT_CONCURRENCY) await flush();
  }
  await flush();
  return { objects, prefixes, next: undefined };
}

/** The directory that contains all keys with this prefix; undefined if no key can have it. */
function directoryOfPrefix(prefix: string): string[] | undefined {
  const end = prefix.lastIndexOf('/');
  if (end === -1) return [];
  const folder = prefix.slice(0, end);
  return objectKeyProblem(folder) !== undefined || folder.endsWith('/') ? undefined : folder.split('/');
}

function commonPrefixOf(key: string, { prefix, delimiter }: ObjectListingQuery): string | undefined {
  const at = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
  return at === -1 ? undefined : key.slice(0, at + delimiter.length);
}

/** The keys below a directory that are not listed yet, in order. An empty directory is a key of its own. */
async function* keysBelow(
  root: string,
  names: readonly string[],
  query: ObjectListingQuery,
): AsyncGenerator<FoundKey> {
  const base = names.length === 0 ? '' : `${names.join('/')}/`;
  let last: Entry | undefined;
  for (;;) {
    const next = await nextEntries(root, names, base, query, last);
    if (next === undefined) return;
    if (
      next.empty &&
      base !== '' &&
      base.startsWith(query.prefix) &&
      compareObjectKeys(base, query.after) > 0
    )
      yield { key: base, parent: names.slice(0, -1), name: names.at(-1) ?? '', folder: true };
    for (const entry of next.entries) {
      const { name, folder } = entry;
      const key = base + sortName(entry);
      if (!folder || commonPrefixOf(key, query) === key) yield { key, parent: names, name, folder };
      else yield* keysBelow(root, [...names, name], query);
      last = entry;
    }
    if (!next.more) return;
  }
}

interface Entry {
  name: string;
  folder: boolean;
}

interface NextEntries {
  entries: Entry[];
  /** Whether more entries follow. */
  more: boolean;
  /** Whether the directory is empty. */
  empty: boolean;
}

/**
 * The next entries of a directory after `last`; undefined if the directory does not exist, or if it is below
 * the prefix and not readable. Keeps a bounded number of names in memory.
 */
async function nextEntries(
  root: string,
  names: readonly string[],
  base: string,
  query: ObjectListingQuery,
  last: Entry | undefined,
): Promise<NextEntries | undefined> {
  let entries: Entry[] = [];
  let more = false;
  let empty = true;
  let bound: Entry | undefined;
  const cut = (): void => {
    entries.sort(compareEntries);
    if (entries.length <= MAX_NAMES_IN_MEMORY) return;
    entries = entries.slice(0, MAX_NAMES_IN_MEMORY);
    bound = entries.at(-1);
    more = true;
  };
  const consider = (entry: Entry): void => {
    if (
      (last !== undefined && compareEntries(entry, last) <= 0) ||
      !isWanted(base + sortName(entry), entry.folder, query)
    )
      return;
    if (bound !== undefined && compareEntries(entry, bound) > 0) {
      more = true;
      return;
    }
    entries.push(entry);
    if (entries.length >= 4 * MAX_NAMES_IN_MEMORY) cut();
  };
  try {
    const read = await withParentDirectory(root, [...names, '.'], async ({ directory }) => {
      for await (const found of await opendir(directory.pathOf(), { bufferSize: 1_024 })) {
        empty = false;
        if (found.isFile() || found.isDirectory() || found.isSymbolicLink())
          consider({ name: found.name, folder: found.isDirectory() });
      }
      return true;
    });
    if (read === undefined) return undefined;
  } catch (error) {
    if (isMissingPathError(error) || (isPermissionError(error) && base.length > query.prefix.length))
      return undefined;
    throw error;
  }
  cut();
  return { entries, more, empty };
}

/** A directory is sorted by the prefix of its objects. */
function sortName({ name, folder }: Entry): string {
  return folder ? `${name}/` : name;
}

function compareEntries(one: Entry, other: Entry): number {
  return compareObjectKeys(sortName(one), sortName(other));
}

function isWanted(key: string, folder: boolean, { prefix, after }: ObjectListingQuery): boolean {
  if (!key.startsWith(prefix) && !(folder && prefix.startsWith(key))) return false;
  // A directory may have been listed in part.
  return after === '' || compareObjectKeys(key, after) > 0 || (folder && after.startsWith(key));
}

/** Describes the entries that still exist and are readable, in the same order. */
async function describeAll(
  root: string,
  batch: readonly FoundKey[],
  describe: DescribeObject,
): Promise<StoredObject[]> {
  const described: (StoredObject | undefined)[] = [];
  for (let from = 0; from < batch.length; ) {
    const parent = batch[from]?.parent ?? [];
    let to = from;
    while (batch[to]?.parent === parent) to += 1;
    const siblings = batch.slice(from, to);
    const describeIn = ({ directory }: EntryLocation): Promise<(StoredObject | undefined)[]> =>
      Promise.all(
        siblings.map((found) =>
          unlessPermissionDenied(async () =>
            describeFound(root, found, await lstatIfExists(directory.pathOf(found.name)), describe),
          ),
        ),
      );
    described.push(
      ...((await unlessPermissionDenied(() => withParentDirectory(root, [...parent, '.'], describeIn))) ??
        []),
    );
    from = to;
  }
  return described.filter((object) => object !== undefined);
}

async function unlessPermissionDenied<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isPermissionError(error)) return undefined;
    throw error;
  }
}

async function describeFound(
  root: string,
  { key, parent, name, folder }: FoundKey,
  stats: BigIntStats | undefined,
  describe: DescribeObject,
): Promise<StoredObject | undefined> {
  if (stats?.isSymbolicLink() !== true)
    return stats === undefined || stats.isDirectory() !== folder ? undefined : describe(key, stats);
  const real = await resolveInside(root, [...parent, name]);
  const target =
    real === undefined
      ? undefined
      : await withParentDirectory(root, real, (location) =>
          lstatIfExists(location.directory.pathOf(location.name)),
        );
  return target?.isFile() === true ? describe(key, target) : undefined;
}
