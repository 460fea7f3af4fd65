import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import type { AcmeStore, StoredCertificate } from '../../../store/acme-store.ts';
import { AcmeError, AcmeTransport } from './acme-transport.ts';
import { createSigningRequest } from './signing-request.ts';

export interface OrderOptions {
  directory: string;
  email: string;
  domains: readonly string[];
  store: AcmeStore;
  /** Waits this long between two polls of the state of the order. */
  wait(milliseconds: number): Promise<void>;
}

interface Order {
  status: string;
  authorizations: string[];
  finalize: string;
  certificate?: string;
  error?: { detail?: string };
}

interface Authorization {
  status: string;
  identifier: { value: string };
  challenges: { type: string; url: string; token: string; error?: { detail?: string } }[];
}

const CURVE = 'P-256';
const FIRST_POLL_MS = 250;
const MAX_POLL_MS = 5_000;
const MAX_POLLS = 60;

/** Orders a certificate with HTTP-01 (RFC 8555, section 7). Rejects with the reason of the authority. */
export async function orderCertificate(options: OrderOptions): Promise<StoredCertificate> {
  const { directory, email, domains, store } = options;
  const accountKey = await store.accountKey(directory, newKeyText);
  const acme = new AcmeTransport(directory, createPrivateKey(accountKey));
  await acme.openAccount(email);
  const created = await acme.post<Order>((await acme.directory()).newOrder, {
    identifiers: domains.map((value) => ({ type: 'dns', value })),
  });
  try {
    for (const url of created.body.authorizations) await authorize(acme, url, options);
  } finally {
    await store.removeChallenges();
  }
  const keys = generateKeyPairSync('ec', { namedCurve: CURVE });
  const request = createSigningRequest(domains, keys);
  await acme.post(created.body.finalize, { csr: request.toString('base64url') });
  const order = await poll<Order>(acme, created.url, options, ({ status }) => status !== 'processing');
  if (order.certificate === undefined)
    throw new AcmeError(`the order ended as ${order.status}: ${order.error?.detail ?? 'no reason given'}`);
  return {
    certificate: await acme.download(order.certificate),
    key: keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

/** Publishes the answer to the challenge of one name, and waits until the authority has read it. */
async function authorize(acme: AcmeTransport, url: string, options: OrderOptions): Promise<void> {
  const { body: offered } = await acme.post<Authorization>(url);
  if (offered.status === 'valid') return;
  const name = offered.identifier.value;
  const challenge = offered.challenges.find(({ type }) => type === 'http-01');
  if (challenge === undefined) throw new AcmeError(`the authority offers no HTTP-01 challenge for ${name}`);
  await options.store.saveChallenge(challenge.token, acme.challengeAnswer(challenge.token));
  await acme.post(challenge.url, {});
  const { status, challenges } = await poll<Authorization>(
    acme,
    url,
    options,
    (authorization) => authorization.status !== 'pending',
  );
  if (status === 'valid') return;
  const reason = challenges.find(({ error }) => error !== undefined)?.error?.detail ?? status;
  throw new AcmeError(
    `${name} could not be confirmed: ${reason}. http://${name}/.well-known/acme-challenge/ must lead ` +
      'to this server, on port 80',
  );
}

async function poll<T>(
  acme: AcmeTransport,
  url: string,
  { wait }: OrderOptions,
  isDone: (body: T) => boolean,
): Promise<T> {
  for (let count = 0; count < MAX_POLLS; count += 1) {
    const { body, retryAfter } = await acme.post<T>(url);
    if (isDone(body)) return body;
    const pause = retryAfter === undefined ? FIRST_POLL_MS * 2 ** count : retryAfter * 1000;
    await wait(Math.min(pause, MAX_POLL_MS));
  }
  throw new AcmeError(`${url} did not come to an end`);
}

function newKeyText(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: CURVE });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}
