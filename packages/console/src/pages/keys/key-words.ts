import type { Grant } from '../../api/session.ts';
import { plural } from '../../components/format.ts';

export interface KeyScopes {
  access: 'ALL' | 'READ_ONLY' | 'RESTRICTED';
  scopes: { rest: Grant; graphql: Grant; serverless: Grant };
  /** Those that a restricted key may call; null is all. */
  endpoints: string[] | null;
}

/** What a restricted key may do; empty for the others, whose access says it. */
export function scopeWords({ access, scopes, endpoints }: KeyScopes): string {
  if (access !== 'RESTRICTED') return '';
  const which = endpoints === null ? 'all endpoints' : plural(endpoints.length, 'endpoint');
  const parts = [
    grantWords(scopes.serverless, `calls ${which}`, `reads jobs of ${which}`),
    grantWords(scopes.rest, 'changes resources', 'reads resources'),
    grantWords(scopes.graphql, 'uses GraphQL', 'reads through GraphQL'),
  ].filter((part) => part !== '');
  return parts.join(', ') || 'nothing';
}

function grantWords(grant: Grant, write: string, read: string): string {
  return grant === 'WRITE' ? write : grant === 'READ' ? read : '';
}
