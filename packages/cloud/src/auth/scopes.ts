import type { ApiKey, ScopeLevel, Scopes } from '../domain/records.ts';

/** The interfaces that scopes are for. `rest` is REST v1 and v2; `serverless` is the job API. */
export type ScopeName = keyof Scopes;
export type AccessMode = 'read' | 'write';

/** What a key may do through an interface and, for serverless, with one endpoint. */
export function scopeLevelOf(
  key: Pick<ApiKey, 'access' | 'scopes' | 'endpoints'>,
  scope: ScopeName,
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
      return key.scopes[scope];
  }
}

export function permits(level: ScopeLevel, mode: AccessMode): boolean {
  return level === 'write' || (level === 'read' && mode === 'read');
}

/** Whether a key is enabled and has not expired. */
export function isKeyActive(key: Pick<ApiKey, 'enabled' | 'expiresAt'>, now: number): boolean {
  return key.enabled && (key.expiresAt === null || now < key.expiresAt);
}
