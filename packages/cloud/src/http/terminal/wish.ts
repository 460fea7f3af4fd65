import type { TerminalWish } from '../../resources/terminals/terminals.ts';
import { BerthError } from '../../support/errors.ts';

const DEFAULT_SIZE = { columns: 80, rows: 24 };
export const LARGEST_SIZE = 4096;
const TERM = /^[A-Za-z0-9._+-]{1,64}$/;

/** What an address asks for beyond whose terminal it is: `?cmd=ls&cmd=-l&tty=false&columns=80&rows=24&term=xterm`. */
export function readWish(query: URLSearchParams): TerminalWish {
  const argv = query.getAll('cmd');
  const tty = query.get('tty') ?? String(argv.length === 0);
  const term = query.get('term') ?? undefined;
  if (tty !== 'true' && tty !== 'false')
    throw wrong(`tty: must be true or false, got ${JSON.stringify(tty.slice(0, 20))}`);
  if (term !== undefined && !TERM.test(term))
    throw wrong('term: must be the name of a kind of terminal, such as xterm-256color');
  if (argv.some((word) => word.includes('\0'))) throw wrong('cmd: no word may hold a NUL');
  if (argv[0] === '') throw wrong('cmd: the command has no name');
  const size = { columns: readSize(query, 'columns'), rows: readSize(query, 'rows') };
  return {
    ...(argv.length > 0 && { argv }),
    ...(tty === 'true' && { tty: size }),
    ...(term !== undefined && { term }),
  };
}

function readSize(query: URLSearchParams, name: 'columns' | 'rows'): number {
  const given = query.get(name);
  if (given === null) return DEFAULT_SIZE[name];
  const value = /^\d{1,5}$/.test(given) ? Number(given) : NaN;
  if (!isSize(value))
    throw wrong(
      `${name}: must be a whole number from 1 to ${LARGEST_SIZE}, got ${JSON.stringify(given.slice(0, 20))}`,
    );
  return value;
}

export function isSize(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= LARGEST_SIZE;
}

function wrong(finding: string): BerthError {
  return new BerthError('schema', 'Request validation failed.', { details: [`$.${finding}`] });
}
