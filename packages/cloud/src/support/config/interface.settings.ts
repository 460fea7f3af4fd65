import { booleanType, dateType, enumType, listenAddressType, wholeNumberType } from './setting-type.ts';
import { defineSetting } from './setting.ts';

/** The interfaces that clients use, and webhooks. */
export const interfaceSettings = {
  'v1.enabled': defineSetting({
    type: booleanType(['true', 'false']),
    default: true,
    description: 'Whether REST v1 is served. Turn it off when every client uses v2.',
  }),
  'v1.sunset': defineSetting({
    type: dateType(),
    default: '2026-11-15',
    description:
      'The date in the Sunset header of REST v1. v1 is still served after it, unless it is turned off.',
  }),
  'metrics.access': defineSetting({
    type: enumType(['auto', 'open', 'key']),
    default: 'auto',
    description:
      'Who may read /metrics, which covers all accounts. open: anyone who can reach Berth. key: ' +
      'requires a key of the root account, as a bearer token. auto: open if Berth listens on ' +
      'loopback and the root account is the only account, otherwise key.',
  }),
  'metrics.listen': defineSetting({
    type: listenAddressType(),
    default: '',
    description:
      'A second address that serves only /metrics, as HTTP and without a key, for Prometheus. Choose one ' +
      'that only Prometheus reaches. At the main address, metrics.access still applies. Empty: no ' +
      'second address.',
    example: 'metrics:\n  listen: 127.0.0.1:9464',
  }),
  'graphql.maxDepth': defineSetting({
    type: wholeNumberType(1, 1000),
    default: 20,
    description:
      'How deeply the selections of a GraphQL query may be nested. It limits the work that one ' +
      'request can cause.',
  }),
  'graphql.maxFields': defineSetting({
    type: wholeNumberType(1),
    default: 2000,
    description: 'How many fields a GraphQL query may select in total, with its fragments expanded.',
  }),
  'webhooks.allowPrivate': defineSetting({
    type: booleanType(['true', 'false']),
    default: false,
    description:
      'Whether webhooks may be sent to loopback and private addresses. Anyone who can submit a job ' +
      'chooses the address, so allow it only if all of them may reach your network, or to try Berth ' +
      'on one machine.',
  }),
  'webhooks.attempts': defineSetting({
    type: wholeNumberType(1, 100),
    default: 3,
    description:
      'How many times a webhook is attempted before it has failed. A status from 200 to 299 is a success.',
  }),
  'webhooks.pause': defineSetting({
    type: wholeNumberType(0, 3600),
    default: 10,
    description:
      'How many seconds to wait between two attempts of a webhook. Raise it, or the number of ' +
      'attempts, if receivers are unavailable for longer.',
  }),
  'webhooks.timeout': defineSetting({
    type: wholeNumberType(1, 300),
    default: 10,
    description: 'How many seconds a webhook receiver has to answer before the attempt has failed.',
  }),
  'webhooks.keepLog': defineSetting({
    type: wholeNumberType(1, 8760),
    default: 72,
    description:
      'How many hours a webhook stays in the delivery log after it was delivered or has failed. ' +
      'Until then it can be sent again. The log stores the bodies: lower it if results are large.',
  }),
};
