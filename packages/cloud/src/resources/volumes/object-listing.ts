import { opendir } from 'node:fs/promises';
import type { BigIntStats } from 'node:fs';
import { isPermissionError } from '../../support/permission-error.ts';
import { withParentDirectory, resolveInside, isMissingPathError, lstatIfExists } from './directory-handle.ts';
import type { EntryLocation } from './directory-handle.ts';
import { compareObjectKeys, objectKeyProblem } from './object-key.ts';
import type { StoredObject } from './object-metadata.ts';

/** Names of one folder that are in memory at a time: of a folder with more, the next ones are looked for when these are told. */
const MAX_NAMES_IN_MEMORY = 1_000;
/** Files that are looked at side by side. */
const STAT_CONCURRENCY = 64;

export interface ObjectListingQuery {
  prefix: string;
  /** Keys with this after the prefix are told as one prefix; empty is none. */
  delimiter: string;
  /** The last key or prefix that was told; empty at the beginning. */
  after: string;
  limit: number;
}

export interface ObjectListing {
  objects: StoredObject[];
  prefixes: string[];
  /** What `after` has to be to go on; undefined at the end. */
  next: string | undefined;
}

export type DescribeObject = (key: string, file: BigIntStats) => Promise<StoredObject>;

interface FoundKey {
  key: string;
  /** Of the folder that it is in. */
  parent: readonly string[];
  name: string;
  folder: boolean;
}

/** Objects and prefixes in the order of their keys. A link is told as what it leads to where that is a file of this volume. */
export async function listObjects(
  root: string,
  query: ObjectListingQuery,
  describe: DescribeObject,
): Promise<ObjectListing> {
  const objects: StoredObject[] = [];
  const prefixes: string[] = [];
  let last = '';
  let batch: FoundKey[] = [];
  const tell = async (): Promise<void> => {
    objects.push(...(await describeAll(root, batch, describe)));
    batch = [];
  };
  const beginning = directoryOfPrefix(query.prefix);
  if (query.limit === 0 || beginning === undefined) return { objects, prefixes, next: undefined };
  for await (const found of keysBelow(root, beginning, query)) {
    const group = commonPrefixOf(found.key, query);
    if (group !== undefined && (group === prefixes.at(-1) || group === query.after)) continue;
    if (objects.length + batch.length + prefixes.length >= query.limit) {
      // Some that were found may be gone by now: only what is told counts.
      await tell();
      if (objects.length + prefixes.length >= query.limit) return { objects, prefixes, next: last };
    }
    last = group ?? found.key;
    if (group !== undefined) prefixes.push(group);
    else batch.push(found);
    if (batch.length >= STAT_CONCURRENCY) await tell();
  }
  await tell();
  return { objects, prefixes, next: undefined };
}

/** The folder that all keys with this prefix are below; undefined where no key can have it. */
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

/** Every key below a folder that is still to be told, in order. A folder with nothing in it is a key of its own. */
async function* keysBelow(
  root: string,
  names: readonly string[],
  query: ObjectListingQuery,
): AsyncGenerator<FoundKey> {
  const base = names.length === 0 ? '' : `${names.join('/')}/`;
  let told: Entry | undefined;
  for (;;) {
    const next = await nextEntries(root, names, base, query, told);
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
      told = entry;
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
  /** There are others after these. */
  more: boolean;
  /** There is nothing at all in this folder. */
  empty: boolean;
}

/** The first entries of a folder after the one that was told last; undefined where there is no such folder, or one below the prefix that Berth may not look into. Only as many as are told at once are kept while it is read. */
async function nextEntries(
  root: string,
  names: readonly string[],
  base: string,
  query: ObjectListingQuery,
  told: Entry | undefined,
): Promise<NextEntries | undefined> {
  let kept: Entry[] = [];
  let more = false;
  let empty = true;
  let bound: Entry | undefined;
  const cut = (): void => {
    kept.sort(compareEntries);
    if (kept.length <= MAX_NAMES_IN_MEMORY) return;
    kept = kept.slice(0, MAX_NAMES_IN_MEMORY);
    bound = kept.at(-1);
    more = true;
  };
  const consider = (entry: Entry): void => {
    if (
      (told !== undefined && compareEntries(entry, told) <= 0) ||
      !isWanted(base + sortName(entry), entry.folder, query)
    )
      return;
    if (bound !== undefined && compareEntries(entry, bound) > 0) {
      more = true;
      return;
    }
    kept.push(entry);
    if (kept.length >= 4 * MAX_NAMES_IN_MEMORY) cut();
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
  return { entries: kept, more, empty };
}

/** A folder stands in the order where its objects do. */
function sortName({ name, folder }: Entry): string {
  return folder ? `${name}/` : name;
}

function compareEntries(one: Entry, other: Entry): number {
  return compareObjectKeys(sortName(one), sortName(other));
}

function isWanted(key: string, folder: boolean, { prefix, after }: ObjectListingQuery): boolean {
  if (!key.startsWith(prefix) && !(folder && prefix.startsWith(key))) return false;
  // Of a folder, a part may have been told.
  return after === '' || compareObjectKeys(key, after) > 0 || (folder && after.startsWith(key));
}

/** What was found, is still there and may be looked at, in the same order. */
async function describeAll(
  root: string,
  batch: readonly FoundKey[],
  describe: DescribeObject,
): Promise<StoredObject[]> {
  const looked: (StoredObject | undefined)[] = [];
  for (let from = 0; from < batch.length; ) {
    const parent = batch[from]?.parent ?? [];
    let to = from;
    while (batch[to]?.parent === parent) to += 1;
    const together = batch.slice(from, to);
    const describeIn = ({ directory }: EntryLocation): Promise<(StoredObject | undefined)[]> =>
      Promise.all(
        together.map((found) =>
          unlessPermissionDenied(async () =>
            describeFound(root, found, await lstatIfExists(directory.pathOf(found.name)), describe),
          ),
        ),
      );
    looked.push(
      ...((await unlessPermissionDenied(() => withParentDirectory(root, [...parent, '.'], describeIn))) ??
        []),
    );
    from = to;
  }
  return looked.filter((object) => object !== undefined);
}

async function unlessPermissionDenied<T>(look: () => Promise<T>): Promise<T | undefined> {
  try {
    return await look();
  } catch (error) {
    if (isPermissionError(error)) return undefined;
    throw error;
  }
}

async function describeFound(
  root: string,
  { key, parent, name, folder }: FoundKey,
  seen: BigIntStats | undefined,
  describe: DescribeObject,
): Promise<StoredObject | undefined> {
  if (seen?.isSymbolicLink() !== true)
    return seen === undefined || seen.isDirectory() !== folder ? undefined : describe(key, seen);
  const real = await resolveInside(root, [...parent, name]);
  const behind =
    real === undefined
      ? undefined
      : await withParentDirectory(root, real, (place) => lstatIfExists(place.directory.pathOf(place.name)));
  return behind?.isFile() === true ? describe(key, behind) : undefined;
}
