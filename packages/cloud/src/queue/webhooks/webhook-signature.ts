import { createHmac, hkdfSync } from 'node:crypto';

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;

/**
 * The secret with which an account's receivers check signatures. It is derived from the master key, so it is
 * stored nowhere and is the same on every server.
 */
export function webhookSecret(key: Buffer, accountId: string): string {
  return (
    PREFIX +
    Buffer.from(hkdfSync('sha256', key, '', `berth webhook secret\n${accountId}`, SECRET_BYTES)).toString(
      'hex',
    )
  );
}

/** The value of X-Berth-Signature. The HMAC key is the secret's text, including the prefix. */
export function signWebhook(secret: string, body: string | Buffer): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}
