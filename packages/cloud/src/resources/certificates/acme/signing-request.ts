import { sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

const OID_EXTENSION_REQUEST = '2a864886f70d01090e';
const OID_SUBJECT_ALT_NAME = '551d11';
const OID_ECDSA_WITH_SHA256 = '2a8648ce3d040302';

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const OBJECT_ID = 0x06;
const SEQUENCE = 0x30;
const SET = 0x31;
const CONTEXT_0 = 0xa0;
const DNS_NAME = 0x82;

/**
 * A certificate signing request (PKCS #10, RFC 2986) for these host names, in DER. Node makes keys and
 * signatures, but no requests. The subject is empty: authorities read the names of the extension.
 */
export function createSigningRequest(
  names: readonly string[],
  keys: { publicKey: KeyObject; privateKey: KeyObject },
): Buffer {
  const alternativeNames = der(SEQUENCE, ...names.map((name) => der(DNS_NAME, Buffer.from(name, 'ascii'))));
  const extension = der(SEQUENCE, objectId(OID_SUBJECT_ALT_NAME), der(OCTET_STRING, alternativeNames));
  const attribute = der(SEQUENCE, objectId(OID_EXTENSION_REQUEST), der(SET, der(SEQUENCE, extension)));
  const info = der(
    SEQUENCE,
    der(INTEGER, Buffer.from([0])),
    der(SEQUENCE),
    keys.publicKey.export({ type: 'spki', format: 'der' }),
    der(CONTEXT_0, attribute),
  );
  const signature = sign('sha256', info, keys.privateKey);
  return der(
    SEQUENCE,
    info,
    der(SEQUENCE, objectId(OID_ECDSA_WITH_SHA256)),
    der(BIT_STRING, Buffer.from([0]), signature),
  );
}

function objectId(hex: string): Buffer {
  return der(OBJECT_ID, Buffer.from(hex, 'hex'));
}

/** One value: tag, length, content. */
function der(tag: number, ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.from([tag]), lengthBytes(body.length), body]);
}

function lengthBytes(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const digits = length.toString(16);
  const bytes = Buffer.from(digits.padStart(digits.length + (digits.length % 2), '0'), 'hex');
  return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes]);
}
