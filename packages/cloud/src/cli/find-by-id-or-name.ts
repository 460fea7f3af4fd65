import { closestMatch } from '../support/config/did-you-mean.ts';
import { CliError } from './cli.errors.ts';

interface Named {
  id: string;
  name: string;
}

/** How messages call a kind of resource. */
interface ResourceWords {
  noun: string;
  /** Default: the noun with an s. */
  plural?: string;
  /** The command that lists all of them. */
  listCommand: string;
}

/** The resource with this id or, if there is none, with this name. */
export function findByIdOrName<T extends Named>(
  all: readonly T[],
  word: string,
  { noun, plural = `${noun}s` }: Omit<ResourceWords, 'listCommand'>,
): T | undefined {
  const byId = all.filter(({ id }) => id === word);
  const found = byId.length > 0 ? byId : all.filter(({ name }) => name === word);
  if (found.length > 1)
    throw new CliError(
      `${found.length} ${plural} are called ${JSON.stringify(word)}; name one by its id: ` +
        found.map(({ id }) => id).join(', '),
    );
  return found[0];
}

/** As `findByIdOrName`, with an error that helps if there is none. */
export function requireByIdOrName<T extends Named>(all: readonly T[], word: string, words: ResourceWords): T {
  const found = findByIdOrName(all, word, words);
  if (found !== undefined) return found;
  const names = all.map(({ name }) => name);
  throw noSuch(words.noun, word, names, `"${words.listCommand}" shows all`);
}

/** Says which name is close to the given one, or else what shows all names. */
export function noSuch(what: string, word: string, names: readonly string[], otherwise: string): CliError {
  const close = closestMatch(word, names);
  const hint = close === undefined ? otherwise : `did you mean ${JSON.stringify(close)}?`;
  return new CliError(`there is no ${what} ${JSON.stringify(word)}; ${hint}`);
}
