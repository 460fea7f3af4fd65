/** The account of the operator of this installation. Its keys with full access manage the other accounts. */
export const ROOT_ACCOUNT_ID = 'root';

export const POD_ACCESS_DENIED =
  'access denied: with its own key a pod can only read, stop, restart and terminate itself';

/** Who sends a request, and through which interface: what rules check and the audit log records. */
export interface Caller {
  accountId: string;
  /** The id of the API key, or `pod:<id>` for a pod's own token; null if Berth itself acts. */
  keyId: string | null;
  /** May manage accounts: a full-access key of the root account. */
  operator: boolean;
  /** May manage keys: a full-access key. Otherwise a restricted key could create a wider one. */
  fullAccess: boolean;
  /** Set if a pod acts on itself: it has access to nothing else. */
  podId?: string;
  /** Set if the key acts through a session of the console. */
  sessionId?: string;
  /** When the key expires; null: never. Not set where Berth itself or a pod acts. */
  expiresAt?: number | null;
  /** Whether the key may read the jobs of an endpoint. Not set where Berth itself or a pod acts. */
  mayReadJobs?(endpointId: string): boolean;
  interface: 'rest-v1' | 'rest-v2' | 'graphql' | 'jobs' | 's3' | 'system';
  requestId: string;
}

/** Berth itself, for changes that no key made. */
export const SYSTEM_CALLER: Caller = {
  accountId: ROOT_ACCOUNT_ID,
  keyId: null,
  operator: true,
  fullAccess: true,
  interface: 'system',
  requestId: 'start',
};
