/** Someone who is signed in to the console. The session acts with its key's scopes, and ends with the key. */
export interface Session {
  id: string;
  accountId: string;
  keyId: string;
  /** Of the token in the cookie; the token itself is stored nowhere. */
  hash: string;
  /** The browser, as it calls itself. */
  userAgent: string;
  createdAt: number;
  lastUsedAt: number;
  /** It ends then, however much it is used. */
  expiresAt: number;
}

/** A link that signs in the first person who opens it. */
export interface SignInLink {
  hash: string;
  accountId: string;
  keyId: string;
  expiresAt: number;
}

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

export const SESSION_LIFETIME_MS = 30 * DAY_MS;
/** A session that is not used this long ends. */
export const SESSION_IDLE_MS = 7 * DAY_MS;
export const SIGN_IN_LINK_LIFETIME_MS = 60 * MINUTE_MS;
/** What browsers call themselves is cut off here. */
export const MAX_USER_AGENT_LENGTH = 300;

/** What a token begins with. It is never the text of an API key. */
export const SESSION_TOKEN_PREFIX = 'bst_';

export function isSessionToken(text: string): boolean {
  return text.startsWith(SESSION_TOKEN_PREFIX);
}

export function isSessionActive(
  { expiresAt, lastUsedAt }: Pick<Session, 'expiresAt' | 'lastUsedAt'>,
  now: number,
): boolean {
  return now < expiresAt && now - lastUsedAt < SESSION_IDLE_MS;
}
