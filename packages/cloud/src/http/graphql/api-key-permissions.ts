import type { NewApiKey } from '../../resources/keys/api-keys.ts';
import type { ApiKey, ScopeLevel, Scopes } from '../../domain/records.ts';
import { SCOPE_LEVELS } from '../../domain/records.ts';
import { ruleError } from '../../support/errors.ts';

/**
 * What a key may do, as one text: `ALL`, `READ_ONLY`, or for a restricted key the JSON text
 * `{"rest":"write","graphql":"read","serverless":"none","endpoints":["id"]}`. An interface
 * that is not named is `none`; without `endpoints`, serverless means every endpoint.
 */
export type Permissions = Required<Pick<NewApiKey, 'access' | 'endpoints'>> & { scopes?: Scopes };

const EXPECTED_FORM =
  'permissions must be ALL, READ_ONLY, or JSON text such as ' +
  '{"rest":"write","graphql":"read","serverless":"none","endpoints":["id"]}';
const NO_SCOPES: Scopes = { rest: 'none', graphql: 'none', serverless: 'none' };

export function parsePermissions(text: string): Permissions {
  if (text === 'ALL') return { access: 'all', endpoints: null };
  if (text === 'READ_ONLY') return { access: 'read-only', endpoints: null };
  const { endpoints = null, ...scopes } = readObject(text);
  for (const [family, grant] of Object.entries(scopes)) {
    if (!Object.hasOwn(NO_SCOPES, family))
      throw ruleError(`${EXPECTED_FORM}; ${JSON.stringify(family.slice(0, 32))} is no part of it`);
    if (!isGrant(grant))
      throw ruleError(`${EXPECTED_FORM}; ${family} must be one of ${SCOPE_LEVELS.join(', ')}`);
  }
  if (endpoints !== null && !isTextList(endpoints))
    throw ruleError(`${EXPECTED_FORM}; endpoints must be a list of endpoint ids`);
  return { access: 'restricted', scopes: { ...NO_SCOPES, ...(scopes as Partial<Scopes>) }, endpoints };
}

export function formatPermissions({
  access,
  scopes,
  endpoints,
}: Pick<ApiKey, 'access' | 'scopes' | 'endpoints'>): string {
  switch (access) {
    case 'all':
      return 'ALL';
    case 'read-only':
      return 'READ_ONLY';
    case 'restricted':
      return JSON.stringify({
        rest: scopes.rest,
        graphql: scopes.graphql,
        serverless: scopes.serverless,
        ...(endpoints !== null && { endpoints }),
      });
  }
}

function readObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw ruleError(EXPECTED_FORM);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw ruleError(EXPECTED_FORM);
  return value as Record<string, unknown>;
}

function isGrant(value: unknown): value is ScopeLevel {
  return SCOPE_LEVELS.some((grant) => grant === value);
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
