import { createHmac, hkdfSync } from 'node:crypto';

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;

/** What an account's receivers check signatures with. It grows out of the master key, so it is kept nowhere and alike on every server. */
export function webhookSecret(key: Buffer, accountId: string): string {
  return (
    PREFIX +
    Buffer.from(hkdfSync('sha256', key, '', `berth webhook secret\n${accountId}`, SECRET_BYTES)).toString(
      'hex',
    )
  );
}

/** The value of X-Berth-Signature. The key of the HMAC is the secret's text, prefix and all. */
export function signWebhook(secret: string, body: string | Buffer): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}
