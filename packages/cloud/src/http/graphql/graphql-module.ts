import type { Caller } from '../../domain/caller.ts';
import type { RequestContext } from './graphql-request-context.ts';

/**
 * One domain of the interface: its piece of the schema, and the code behind it.
 *
 * A piece adds to what others define with `extend type Query`, `extend type User` and so on.
 * Where a resolver stands says who may ask: without a key, only what is `open` can be reached.
 * The arguments of a resolver hold what was really said: nulls and empty texts are gone.
 */
export interface GraphqlModule {
  sdl: string;
  /** Root fields that answer without a key. */
  publicResolvers?: Partial<Record<'Query' | 'Mutation', Record<string, PublicResolver>>>;
  /** Fields that need a key. */
  authenticatedResolvers?: Partial<
    Record<'Query' | 'Mutation' | 'User', Record<string, AuthenticatedResolver>>
  >;
  /** Fields of other types that are more than a property of their object. */
  fieldResolvers?: Record<string, Record<string, FieldResolver>>;
}

// The schema has checked the arguments, so each resolver names their type itself.
export type PublicResolver = (args: never, context: RequestContext) => unknown;
export type AuthenticatedResolver = (args: never, caller: Caller) => unknown;
export type FieldResolver = (source: never, args: never, context: RequestContext) => unknown;
