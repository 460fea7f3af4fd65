import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import type { Hash, Hmac } from 'node:crypto';
import { describe, test } from 'node:test';
import { SignatureV4 } from '@smithy/signature-v4';
import fc from 'fast-check';
import { checkProperty } from '../../../testing/src/property-testing.ts';
import { percentEncode } from '../support/percent-encoding.ts';
import { sha256Hex, signHeaders } from './sigv4.ts';

/** The hash that the SDK of AWS asks for, from Node's own. */
class Sha256 {
  readonly #hash: Hash | Hmac;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash =
      secret === undefined ? createHash('sha256') : createHmac('sha256', secret as string | Uint8Array);
  }

  update(data: Uint8Array): void {
    this.#hash.update(data);
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {
    // The SDK makes a new one each time.
  }
}

const text = fc.string({ unit: 'grapheme-ascii', maxLength: 12 });
const headerValue = fc.stringMatching(/^[!-~](?:[ -~]{0,20}[!-~])?$/);

describe('SigV4', () => {
  test('signs every request as the SDK of AWS does', async () => {
    await checkProperty(
      fc.asyncProperty(
        fc.constantFrom('GET', 'PUT', 'POST', 'DELETE'),
        fc.array(fc.oneof(text, fc.constantFrom('ü', 'a b', '~', "!'()*", '%')), { maxLength: 4 }),
        fc.dictionary(fc.stringMatching(/^[a-z][a-zA-Z0-9-]{0,8}$/), text, { maxKeys: 4 }),
        fc.dictionary(fc.stringMatching(/^x-[a-z]{1,8}$/), headerValue, { maxKeys: 3 }),
        fc.constantFrom('s3', 'ecr'),
        fc.integer({ min: Date.UTC(2020), max: Date.UTC(2030) }),
        async (method, segments, query, extra, service, now) => {
          const path = `/${segments.map(percentEncode).join('/')}`;
          const headers = { host: 'berth.test', ...extra };
          const signer = new SignatureV4({
            service,
            region: 'eu-1',
            sha256: Sha256,
            credentials: { accessKeyId: 'ID', secretAccessKey: 'SECRET' },
            applyChecksum: false,
            // The path is encoded once, as S3 signs it.
            uriEscapePath: false,
          });
          const { headers: wanted } = await signer.sign(
            {
              method,
              protocol: 'http:',
              hostname: 'berth.test',
              path,
              query,
              headers: { ...headers, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' },
            },
            { signingDate: new Date(now) },
          );
          const signed = signHeaders(
            {
              method,
              path,
              query: Object.entries(query),
              headers: { ...headers, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' },
              payloadHash: 'UNSIGNED-PAYLOAD',
            },
            { accessId: 'ID', secret: 'SECRET', region: 'eu-1', service },
            now,
          );
          assert.deepEqual({ ...signed }, { ...wanted });
        },
      ),
      100,
    );
  });

  test('gives the signature of the example in the documentation of AWS', () => {
    // "GET Object" of the S3 API reference, "Signature Calculations for the Authorization Header".
    const empty = sha256Hex('');
    const { authorization } = signHeaders(
      {
        method: 'GET',
        path: '/test.txt',
        query: [],
        headers: {
          host: 'examplebucket.s3.amazonaws.com',
          range: 'bytes=0-9',
          'x-amz-content-sha256': empty,
        },
        payloadHash: empty,
      },
      {
        accessId: 'AKIAIOSFODNN7EXAMPLE',
        secret: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
        region: 'us-east-1',
        service: 's3',
      },
      Date.UTC(2013, 4, 24),
    );
    assert.match(
      authorization ?? '',
      /Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41$/,
    );
  });
});
