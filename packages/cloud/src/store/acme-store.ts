/** What the servers of an installation share of their certificate by ACME. Everything is sealed. */
export interface AcmeStore {
  /**
   * The key of the account at a certificate authority. The one that is there stays: all servers use the same.
   */
  accountKey(directory: string, fresh: () => string): Promise<string>;
  findCertificate(): Promise<StoredCertificate | undefined>;
  saveCertificate(certificate: StoredCertificate): Promise<void>;
  /** The answer to a challenge, which the authority may request from any server. */
  findChallenge(token: string): Promise<string | undefined>;
  saveChallenge(token: string, answer: string): Promise<void>;
  removeChallenges(): Promise<void>;
}

/** Both in PEM. */
export interface StoredCertificate {
  certificate: string;
  key: string;
}
