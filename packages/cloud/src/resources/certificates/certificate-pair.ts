import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

/** A certificate with its chain and its private key, checked to fit together. */
export interface CertificatePair {
  /** The server's own certificate and the intermediate ones, in PEM. */
  certificate: string;
  key: string;
  /** The host names that it is for. */
  names: string[];
  /** In milliseconds. */
  validFrom: number;
  validTo: number;
}

/** Why a certificate and a key cannot be used. */
export class CertificateError extends Error {}

/** The clock of an authority may be ahead of this machine's. */
const CLOCK_TOLERANCE_MS = 3_600_000;

const CERTIFICATES = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** Checks the pair. `names` says where the two come from: the files, usually. */
export function readCertificatePair(
  certificate: string,
  key: string,
  now: number,
  names: { certificate: string; key: string },
): CertificatePair {
  const [own] = readChain(certificate, names.certificate);
  const privateKey = readKey(key, names.key);
  if (!own.checkPrivateKey(privateKey))
    throw new CertificateError(
      `the key in ${names.key} is not that of the first certificate in ${names.certificate}, which is ` +
        `for ${namesOf(own).join(', ')}`,
    );
  const validFrom = Date.parse(own.validFrom);
  const validTo = Date.parse(own.validTo);
  if (now > validTo)
    throw new CertificateError(
      `the certificate in ${names.certificate} expired on ${new Date(validTo).toISOString()}`,
    );
  if (now < validFrom - CLOCK_TOLERANCE_MS)
    throw new CertificateError(
      `the certificate in ${names.certificate} is not valid before ` +
        `${new Date(validFrom).toISOString()}; check the clock of this machine`,
    );
  return { certificate, key, names: namesOf(own), validFrom, validTo };
}

/**
 * Every certificate of the chain but the last must be signed by the one after it: clients do not sort them.
 */
function readChain(pem: string, source: string): [X509Certificate, ...X509Certificate[]] {
  const chain = (pem.match(CERTIFICATES) ?? []).map((text, index) => {
    try {
      return new X509Certificate(text);
    } catch (cause) {
      throw new CertificateError(`certificate ${index + 1} in ${source} cannot be read`, { cause });
    }
  });
  const [own, ...rest] = chain;
  if (own === undefined) throw new CertificateError(`${source} contains no certificate in PEM`);
  for (const [index, issuer] of rest.entries())
    if (!chain[index]?.checkIssued(issuer))
      throw new CertificateError(
        `certificate ${index + 1} in ${source} was not issued by the one after it; put the server's ` +
          'own first, then each issuer',
      );
  return [own, ...rest];
}

function readKey(pem: string, source: string): KeyObject {
  if (/-----BEGIN ENCRYPTED|Proc-Type: 4,ENCRYPTED/.test(pem))
    throw new CertificateError(
      `the key in ${source} has a passphrase; remove it with: openssl pkey -in FILE -out FILE`,
    );
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    throw new CertificateError(`${source} contains no private key in PEM`, { cause });
  }
}

/** The DNS names and addresses that clients compare with the one they use. */
function namesOf(certificate: X509Certificate): string[] {
  const names = (certificate.subjectAltName ?? '')
    .split(', ')
    .flatMap((entry) => /^(?:DNS|IP Address):(.+)$/.exec(entry)?.[1] ?? []);
  return names.length > 0 ? names : [/^CN=(.+)$/m.exec(certificate.subject)?.[1] ?? 'nobody'];
}
