import type { TerminalRequest } from '../../resources/terminals/terminals.ts';
import { type BerthError, schemaError } from '../../support/errors.ts';
import { TERMINAL_SIZE } from '../../domain/limits.ts';

const DEFAULT_SIZE = { columns: 80, rows: 24 };
const TERM = /^[A-Za-z0-9._+-]{1,64}$/;

/** Parses the query of a terminal URL: `?cmd=ls&cmd=-l&tty=false&columns=80&rows=24&term=xterm`. */
export function parseTerminalOptions(query: URLSearchParams): TerminalRequest {
  const argv = query.getAll('cmd');
  const tty = query.get('tty') ?? String(argv.length === 0);
  const term = query.get('term') ?? undefined;
  if (tty !== 'true' && tty !== 'false')
    throw validationError(`tty: must be true or false, got ${JSON.stringify(tty.slice(0, 20))}`);
  if (term !== undefined && !TERM.test(term))
    throw validationError('term: must be the name of a kind of terminal, such as xterm-256color');
  if (argv.some((word) => word.includes('\0'))) throw validationError('cmd: no word may hold a NUL');
  if (argv[0] === '') throw validationError('cmd: the command has no name');
  const size = { columns: parseSize(query, 'columns'), rows: parseSize(query, 'rows') };
  return {
    ...(argv.length > 0 && { argv }),
    ...(tty === 'true' && { tty: size }),
    ...(term !== undefined && { term }),
  };
}

function parseSize(query: URLSearchParams, name: 'columns' | 'rows'): number {
  const given = query.get(name);
  if (given === null) return DEFAULT_SIZE[name];
  const value = /^\d{1,5}$/.test(given) ? Number(given) : NaN;
  if (!isTerminalSize(value))
    throw validationError(
      `${name}: must be a whole number from 1 to ${TERMINAL_SIZE.maximum}, got ${JSON.stringify(given.slice(0, 20))}`,
    );
  return value;
}

export function isTerminalSize(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= TERMINAL_SIZE.maximum;
}

function validationError(finding: string): BerthError {
  return schemaError([`$.${finding}`]);
}
