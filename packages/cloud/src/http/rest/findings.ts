import type { ErrorObject } from 'ajv/dist/2020.js';
import { formatWords } from './formats.ts';
import { settle } from './problems.ts';
import type { Problem } from './problems.ts';

/** No more than this many are told at once. */
export const MOST_FINDINGS = 20;
/** A finding repeats at most so many characters of what was sent. */
const MOST_ECHOED = 60;
/** A longer list of allowed values is cut. */
const MOST_CHOICES = 24;

/** What lies below a name like these is never repeated: answers end up in logs and screenshots. */
const SECRET_NAME = /pass(?:word|wd|phrase)|secret|token|credential|value|key|^env$/i;

/** Where the value came from. In a query everything is text, so the text itself is the news, not its type. */
export type Origin = 'body' | 'query';

/** One short line per thing to change: where it is, what it must be, and what was found there. */
export function findingsOf(errors: ErrorObject[], root: unknown, origin: Origin = 'body'): string[] {
  const lines = new Set<string>();
  for (const problem of settle(errors)) {
    if (lines.size === MOST_FINDINGS) break;
    const place = locate(root, problem.instancePath);
    lines.add(`${place.path}: ${wording(problem, place, origin)}`);
  }
  return [...lines];
}

interface Place {
  path: string;
  value: unknown;
  secret: boolean;
}

function locate(root: unknown, pointer: string): Place {
  const place: Place = { path: '$', value: root, secret: false };
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(place.value)) place.path += `[${name}]`;
    else place.path += /^[\w-]+$/.test(name) && name.length <= MOST_ECHOED ? `.${name}` : `[${quoted(name)}]`;
    place.secret ||= SECRET_NAME.test(name);
    place.value =
      typeof place.value === 'object' && place.value !== null && Object.hasOwn(place.value, name)
        ? (place.value as Record<string, unknown>)[name]
        : undefined;
  }
  return place;
}

function wording(problem: Problem, place: Place, origin: Origin): string {
  const { keyword, params } = problem;
  if (problem.propertyName !== undefined) {
    const name: Place = { path: place.path, value: problem.propertyName, secret: true };
    return `property name ${inQuotes(problem.propertyName)} ${demand(keyword, params, name, origin, false)}`;
  }
  switch (keyword) {
    case 'required':
    case 'dependentRequired':
      return `missing property ${[params['missingProperty']].flat().map(inQuotes).join(' or ')}`;
    case 'additionalProperties':
      return `additional properties ${inQuotes(params['additionalProperty'])} not allowed`;
    case 'unevaluatedProperties':
      return `additional properties ${inQuotes(params['unevaluatedProperty'])} not allowed`;
    case 'uniqueItems':
      return `items ${[params['i'], params['j']]
        .map((index) => `[${Number(index)}]`)
        .sort()
        .join(' and ')} are equal, give each once`;
    default:
      return demand(keyword, params, place, origin, problem.orNull ?? false);
  }
}

/** "must be …, got …" */
function demand(
  keyword: string,
  params: Record<string, unknown>,
  place: Place,
  origin: Origin,
  orNull: boolean,
): string {
  const limit = Number(params['limit']);
  const exact = echo(place);
  const repeated = origin === 'query' && Array.isArray(place.value);
  switch (keyword) {
    case 'type': {
      if (repeated) return 'must be given once only';
      const wanted = [params['type']].flat() as string[];
      const wrongNumber =
        typeof place.value === 'number' && (wanted.includes('integer') || wanted.includes('number'));
      const seen = wrongNumber || (origin === 'query' && typeof place.value === 'string') ? exact : undefined;
      return `must be ${either([...wanted.map((type) => TYPE_WORDS[type] ?? type), ...(orNull ? ['null'] : [])])}, got ${seen ?? typeWord(place.value)}`;
    }
    case 'enum':
    case 'const': {
      if (repeated) return 'must be given once only';
      const allowed = keyword === 'enum' ? (params['allowedValues'] as unknown[]) : [params['allowedValue']];
      const shown = allowed
        .slice(0, MOST_CHOICES)
        .map((value) => (typeof value === 'string' && value !== '' ? value : JSON.stringify(value)))
        .join(', ');
      const more = allowed.length > MOST_CHOICES ? ` and ${allowed.length - MOST_CHOICES} more` : '';
      return `must be ${allowed.length > 1 ? 'one of ' : ''}${shown}${more}${orNull ? ' or null' : ''}, got ${exact ?? typeWord(place.value)}`;
    }
    case 'minLength':
      return limit === 1 ? 'must not be empty' : `must be at least ${limit} characters long`;
    case 'maxLength':
      return `must be at most ${limit} characters long`;
    case 'pattern':
      return `must match ${String(params['pattern'])}${got(exact)}`;
    case 'format':
      return `must be ${formatWords[String(params['format'])] ?? `of the format ${String(params['format'])}`}${got(exact)}`;
    case 'minimum':
      return `must be at least ${limit}${got(exact)}`;
    case 'maximum':
      return `must be at most ${limit}${got(exact)}`;
    case 'exclusiveMinimum':
      return `must be more than ${limit}${got(exact)}`;
    case 'exclusiveMaximum':
      return `must be less than ${limit}${got(exact)}`;
    case 'multipleOf':
      return `must be a multiple of ${Number(params['multipleOf'])}${got(exact)}`;
    case 'minItems':
      return `must have at least ${counted(limit, 'item')}, got ${sizeOf(place.value)}`;
    case 'maxItems':
      return `must have at most ${counted(limit, 'item')}, got ${sizeOf(place.value)}`;
    case 'minProperties':
      return `must have at least ${limit === 1 ? '1 property' : `${limit} properties`}, got ${sizeOf(place.value)}`;
    case 'maxProperties':
      return `must have at most ${limit === 1 ? '1 property' : `${limit} properties`}, got ${sizeOf(place.value)}`;
    case 'oneOf':
      return 'fits more than one of its alternatives, must fit exactly one';
    case 'not':
      return 'is of a form that is not allowed here';
    case 'false schema':
      return 'must not be given';
    default:
      return `does not satisfy ${keyword}`;
  }
}

const TYPE_WORDS: Record<string, string> = {
  string: 'a string',
  integer: 'an integer',
  number: 'a number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
};

function typeWord(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** The value itself, where it is short to tell and no secret. */
function echo(place: Place): string | undefined {
  if (place.secret) return undefined;
  if (typeof place.value === 'string') return quoted(place.value);
  return typeof place.value === 'number' || typeof place.value === 'boolean' || place.value === null
    ? String(place.value)
    : undefined;
}

function got(exact: string | undefined): string {
  return exact === undefined ? '' : `, got ${exact}`;
}

function quoted(text: string): string {
  return JSON.stringify(clipped(text));
}

/** A property's name as a finding shows it; names come from outside as well. */
function inQuotes(name: unknown): string {
  return `'${JSON.stringify(clipped(String(name))).slice(1, -1)}'`;
}

function clipped(text: string): string {
  return text.length <= MOST_ECHOED ? text : `${text.slice(0, MOST_ECHOED - 1).toWellFormed()}…`;
}

function either(words: string[]): string {
  const different = [...new Set(words)];
  return different.length === 1
    ? different[0]!
    : `${different.slice(0, -1).join(', ')} or ${different.at(-1)}`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function sizeOf(value: unknown): number {
  return Object.keys(value as object).length;
}
