import type { CertificatePair } from './certificate-pair.ts';

/** Where the certificate of this server comes from. */
export interface CertificateSource {
  /** Undefined as long as there is none. */
  readonly current: CertificatePair | undefined;
  /** Called with every new certificate. */
  onChange(listener: (pair: CertificatePair) => void): void;
  start(): void;
  close(): Promise<void>;
}
