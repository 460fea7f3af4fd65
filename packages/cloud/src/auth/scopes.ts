import type { ApiKey, ScopeLevel, Scopes } from '../domain/records.ts';

/** The interfaces that a key's scopes speak of. REST is v1 and v2; serverless is the job interface. */
export type ScopeName = keyof Scopes;
export type AccessMode = 'read' | 'write';

/** What a key may do with a family of interfaces, and, for serverless, with one endpoint. */
export function scopeLevelOf(
  key: Pick<ApiKey, 'access' | 'scopes' | 'endpoints'>,
  family: ScopeName,
  endpointId?: string,
): ScopeLevel {
  switch (key.access) {
    case 'all':
      return 'write';
    case 'read-only':
      return 'read';
    case 'restricted':
      if (endpointId !== undefined && key.endpoints !== null && !key.endpoints.includes(endpointId))
        return 'none';
      return key.scopes[family];
  }
}

export function permits(grant: ScopeLevel, need: AccessMode): boolean {
  return grant === 'write' || (grant === 'read' && need === 'read');
}

/** Whether a key is good at this moment, whatever it may do. */
export function isKeyActive(key: Pick<ApiKey, 'enabled' | 'expiresAt'>, now: number): boolean {
  return key.enabled && (key.expiresAt === null || now < key.expiresAt);
}
