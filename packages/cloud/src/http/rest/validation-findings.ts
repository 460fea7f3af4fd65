import type { ErrorObject } from 'ajv/dist/2020.js';
import { formatDescriptions } from '../../support/string-formats.ts';
import { reduceAjvErrors } from './ajv-errors.ts';
import type { ReducedAjvError } from './ajv-errors.ts';
import { MAX_FINDINGS } from '../../domain/limits.ts';
/** A finding repeats at most so many characters of what was sent. */
const MAX_ECHOED_CHARS = 60;
/** A longer list of allowed values is cut. */
const MAX_LISTED_CHOICES = 24;

/** Values below names like these are never repeated: responses end up in logs and screenshots. */
const SECRET_NAME = /pass(?:word|wd|phrase)|secret|token|credential|value|key|^env$/i;

/** Where the value came from. In a query everything is text, so findings show the text, not its type. */
export type ValueSource = 'body' | 'query';

/** One short line per thing to change: where it is, what it must be, and what was found there. */
export function validationFindings(
  errors: ErrorObject[],
  root: unknown,
  origin: ValueSource = 'body',
): string[] {
  const lines = new Set<string>();
  for (const problem of reduceAjvErrors(errors)) {
    if (lines.size === MAX_FINDINGS) break;
    const location = locate(root, problem.instancePath);
    lines.add(`${location.path}: ${describeError(problem, location, origin)}`);
  }
  return [...lines];
}

interface ValueLocation {
  path: string;
  value: unknown;
  secret: boolean;
}

function locate(root: unknown, pointer: string): ValueLocation {
  const location: ValueLocation = { path: '$', value: root, secret: false };
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(location.value)) location.path += `[${name}]`;
    else
      location.path +=
        /^[\w-]+$/.test(name) && name.length <= MAX_ECHOED_CHARS ? `.${name}` : `[${quoted(name)}]`;
    location.secret ||= SECRET_NAME.test(name);
    location.value =
      typeof location.value === 'object' && location.value !== null && Object.hasOwn(location.value, name)
        ? (location.value as Record<string, unknown>)[name]
        : undefined;
  }
  return location;
}

function describeError(problem: ReducedAjvError, location: ValueLocation, origin: ValueSource): string {
  const { keyword, params } = problem;
  if (problem.propertyName !== undefined) {
    const name: ValueLocation = { path: location.path, value: problem.propertyName, secret: true };
    return (
      `property name ${inQuotes(problem.propertyName)} ` +
      `${describeRequirement(keyword, params, name, origin, false)}`
    );
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
      return describeRequirement(keyword, params, location, origin, problem.orNull ?? false);
  }
}

/** "must be …, got …" */
function describeRequirement(
  keyword: string,
  params: Record<string, unknown>,
  location: ValueLocation,
  origin: ValueSource,
  orNull: boolean,
): string {
  const limit = Number(params['limit']);
  const exact = quotedValue(location);
  const repeated = origin === 'query' && Array.isArray(location.value);
  switch (keyword) {
    case 'type': {
      if (repeated) return 'must be given once only';
      const wanted = [params['type']].flat() as string[];
      const wrongNumber =
        typeof location.value === 'number' && (wanted.includes('integer') || wanted.includes('number'));
      const seen =
        wrongNumber || (origin === 'query' && typeof location.value === 'string') ? exact : undefined;
      const labels = [...wanted.map((type) => TYPE_LABELS[type] ?? type), ...(orNull ? ['null'] : [])];
      return `must be ${either(labels)}, got ${seen ?? typeLabel(location.value)}`;
    }
    case 'enum':
    case 'const': {
      if (repeated) return 'must be given once only';
      const allowed = keyword === 'enum' ? (params['allowedValues'] as unknown[]) : [params['allowedValue']];
      const shown = allowed
        .slice(0, MAX_LISTED_CHOICES)
        .map((value) => (typeof value === 'string' && value !== '' ? value : JSON.stringify(value)))
        .join(', ');
      const more =
        allowed.length > MAX_LISTED_CHOICES ? ` and ${allowed.length - MAX_LISTED_CHOICES} more` : '';
      return (
        `must be ${allowed.length > 1 ? 'one of ' : ''}${shown}${more}${orNull ? ' or null' : ''}, ` +
        `got ${exact ?? typeLabel(location.value)}`
      );
    }
    case 'minLength':
      return limit === 1 ? 'must not be empty' : `must be at least ${limit} characters long`;
    case 'maxLength':
      return `must be at most ${limit} characters long`;
    case 'pattern':
      return `must match ${String(params['pattern'])}${gotSuffix(exact)}`;
    case 'format': {
      const format = String(params['format']);
      return `must be ${formatDescriptions[format] ?? `of the format ${format}`}${gotSuffix(exact)}`;
    }
    case 'minimum':
      return `must be at least ${limit}${gotSuffix(exact)}`;
    case 'maximum':
      return `must be at most ${limit}${gotSuffix(exact)}`;
    case 'exclusiveMinimum':
      return `must be more than ${limit}${gotSuffix(exact)}`;
    case 'exclusiveMaximum':
      return `must be less than ${limit}${gotSuffix(exact)}`;
    case 'multipleOf':
      return `must be a multiple of ${Number(params['multipleOf'])}${gotSuffix(exact)}`;
    case 'minItems':
      return `must have at least ${counted(limit, 'item')}, got ${sizeOf(location.value)}`;
    case 'maxItems':
      return `must have at most ${counted(limit, 'item')}, got ${sizeOf(location.value)}`;
    case 'minProperties':
      return `must have at least ${limit === 1 ? '1 property' : `${limit} properties`}, got ${sizeOf(location.value)}`;
    case 'maxProperties':
      return `must have at most ${limit === 1 ? '1 property' : `${limit} properties`}, got ${sizeOf(location.value)}`;
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

const TYPE_LABELS: Record<string, string> = {
  string: 'a string',
  integer: 'an integer',
  number: 'a number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
};

function typeLabel(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** The value itself, where it is short and no secret. */
function quotedValue(location: ValueLocation): string | undefined {
  if (location.secret) return undefined;
  if (typeof location.value === 'string') return quoted(location.value);
  return typeof location.value === 'number' || typeof location.value === 'boolean' || location.value === null
    ? String(location.value)
    : undefined;
}

function gotSuffix(exact: string | undefined): string {
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
  return text.length <= MAX_ECHOED_CHARS ? text : `${text.slice(0, MAX_ECHOED_CHARS - 1).toWellFormed()}…`;
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
