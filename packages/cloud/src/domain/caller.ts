/** Who asks, and through which interface: what a rule needs to know, and what the audit log records. */
export interface Caller {
  accountId: string;
  /** The key that was shown, `pod:<id>` for a pod's own; null where Berth itself acts. */
  keyId: string | null;
  /** May manage accounts: a key with full access of the root account. */
  operator: boolean;
  /** May manage keys: a key with full access. A narrower key could otherwise make itself a wider one. */
  fullAccess: boolean;
  /** A pod that acts on itself: nothing else is open to it. */
  podId?: string;
  interface: 'rest-v1' | 'rest-v2' | 'graphql' | 'jobs' | 's3' | 'system';
  requestId: string;
}

/** The account of whoever runs this installation. Its keys with full access manage the other accounts. */
export const ROOT_ACCOUNT_ID = 'root';

/** Berth itself, where no key stands behind a change. */
export const SYSTEM_CALLER: Caller = {
  accountId: ROOT_ACCOUNT_ID,
  keyId: null,
  operator: true,
  fullAccess: true,
  interface: 'system',
  requestId: 'start',
};
