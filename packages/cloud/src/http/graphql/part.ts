import type { Caller } from '../../resources/caller.ts';
import type { Asking } from './asking.ts';

/**
 * One domain of the interface: its piece of the schema, and the code behind it.
 *
 * A piece adds to what others define with `extend type Query`, `extend type User` and so on.
 * Where a resolver stands says who may ask: without a key, only what is `open` can be reached.
 * The arguments of a resolver hold what was really said: nulls and empty texts are gone.
 */
export interface Part {
  sdl: string;
  /** Root fields that answer without a key. */
  open?: Partial<Record<'Query' | 'Mutation', Record<string, OpenResolver>>>;
  /** Fields that belong to whoever shows a key. */
  keyed?: Partial<Record<'Query' | 'Mutation' | 'User', Record<string, KeyedResolver>>>;
  /** Fields of other types that are more than a property of their object. */
  fields?: Record<string, Record<string, FieldResolver>>;
}

// The schema has checked the arguments, so each resolver names their type itself.
export type OpenResolver = (args: never, asking: Asking) => unknown;
export type KeyedResolver = (args: never, caller: Caller) => unknown;
export type FieldResolver = (source: never, args: never, asking: Asking) => unknown;
