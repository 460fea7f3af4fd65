import { isAddressRange } from '../address-ranges.ts';
import { listType, optionalTextType, urlType, wholeNumberType } from './setting-type.ts';
import { defineSetting } from './setting.ts';

const isHostName = (value: string): boolean =>
  /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i.test(value);
const filePath = optionalTextType('the path of a file in PEM', (value) =>
  value.includes('\0') ? undefined : value,
);

/** HTTPS by certificate files or by ACME. docs/tls.md explains how they work together. */
export const tlsSettings = {
  'tls.certificate': defineSetting({
    type: filePath,
    default: '',
    description:
      'The certificate of this server with its intermediate certificates, as a PEM file. If set, ' +
      'Berth serves HTTPS at its port. The file is read again when it changes. Empty: HTTP.',
  }),
  'tls.key': defineSetting({
    type: filePath,
    default: '',
    description: 'The private key of the certificate, as a file in PEM without a passphrase.',
  }),
  'tls.redirectPort': defineSetting({
    type: wholeNumberType(0, 65535),
    default: 0,
    description:
      'A second port, usually 80, that redirects HTTP to HTTPS and answers the challenges of ACME. 0: none.',
  }),
  'tls.plainFrom': defineSetting({
    type: listType('address ranges such as 10.0.0.0/8 or fd00::/8', isAddressRange),
    default: [],
    description:
      'Networks whose clients may use HTTP without TLS although Berth speaks HTTPS: a proxy in ' +
      'front of it, or workers on other machines. ' +
      'This machine and its containers always may; all others are redirected to HTTPS.',
    example: 'tls:\n  plainFrom: [10.42.0.0/16]',
  }),
  'tls.acme.domains': defineSetting({
    type: listType('host names', isHostName),
    default: [],
    description:
      'The host names of this server. Berth gets a certificate for them by ACME (HTTP-01) and renews ' +
      'it. Each name must lead to this server on port 80: set tls.redirectPort. Empty: no ACME.',
    example: 'tls:\n  acme:\n    domains: [berth.example.com]',
  }),
  'tls.acme.email': defineSetting({
    type: optionalTextType('an e-mail address', (value) =>
      /^[^\s@]+@[^\s@]+$/.test(value) ? value : undefined,
    ),
    default: '',
    description:
      'The e-mail address for messages of the certificate authority. Berth accepts its terms of service.',
  }),
  'tls.acme.directory': defineSetting({
    type: urlType(),
    default: 'https://acme-v02.api.letsencrypt.org/directory',
    description: 'The ACME directory of the certificate authority.',
  }),
};
