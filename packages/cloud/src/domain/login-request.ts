export type LoginStatus = 'PENDING' | 'APPROVED' | 'DENIED' | 'CONSUMED';

/**
 * A program that asks for a key of its own, until someone who has one says yes or no. It belongs to no
 * account before.
 */
export interface LoginRequest {
  id: string;
  keyName: string;
  codeChallenge: string | null;
  codeChallengeMethod: string | null;
  status: LoginStatus;
  /** The new key, between the yes and the moment it is fetched. */
  key: string | null;
  createdAt: number;
  expiresAt: number;
}
