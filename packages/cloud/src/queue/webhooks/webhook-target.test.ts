import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LookupAddress } from 'node:dns';
import { resolveTarget, TargetRefusedError, createTargetPolicy } from './webhook-target.ts';
import { createHostResolver } from './host-resolver.ts';

const answering =
  (...addresses: string[]) =>
  async (): Promise<LookupAddress[]> =>
    addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
const strict = (...addresses: string[]) =>
  createTargetPolicy({ allowPrivate: false }, answering(...addresses));
const loose = createTargetPolicy({ allowPrivate: true }, answering('10.0.0.1'));

function refused(address: string, rules = strict('127.0.0.1')): Promise<string> {
  return resolveTarget(address, rules).then(
    () => assert.fail(`${address} was let through`),
    (error: unknown) => {
      assert.ok(error instanceof TargetRefusedError, String(error));
      return error.message;
    },
  );
}

test('accepts only http and https', async () => {
  for (const address of [
    'ftp://example.com/',
    'file:///etc/passwd',
    'gopher://example.com/',
    'javascript:0',
    'unix:/run/x',
    'data:,x',
  ])
    assert.match(await refused(address, loose), /not of http: or https:/);
  for (const address of ['', 'example.com', '//example.com', 'http://', 'http://[::g]/', 'http://a b/'])
    assert.match(await refused(address, loose), /is not an address/);
});

test('refuses a user name or a password', async () => {
  for (const address of [
    'http://user@example.com/',
    'https://user:password@example.com/',
    'http://:password@example.com/',
  ])
    assert.match(await refused(address, loose), /user name or password/);
});

test('refuses a private address in every notation', async () => {
  for (const host of [
    '127.0.0.1',
    '127.1',
    '0x7f.1',
    '0177.0.0.1',
    '2130706433',
    '0',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '169.254.169.254',
    '①②⑦.⓪.⓪.①',
    '127。0。0。1',
    '[64:ff9b::7f00:1]',
  ]) {
    assert.match(
      await refused(`http://${host}:8080/`, strict('8.8.8.8')),
      / is (a loopback|an unspecified|a link-local) address, which webhooks do not reach unless the operator allows it with webhooks.allowPrivate$/,
      host,
    );
  }
});

test('refuses a name that resolves to a private address, without revealing the address', async () => {
  const message = await refused('https://inside.example/', strict('10.20.30.40'));
  assert.equal(
    message,
    'inside.example leads to a private address, which webhooks do not reach unless the operator allows ' +
      'it with webhooks.allowPrivate',
  );
});

test('of several addresses, only the allowed ones are used', async () => {
  const { addresses } = await resolveTarget(
    'https://example.com/',
    strict('10.0.0.1', '8.8.8.8', '::1', '2606:4700::1111'),
  );
  assert.deepEqual(addresses, [
    { address: '8.8.8.8', family: 4 },
    { address: '2606:4700::1111', family: 6 },
  ]);
});

test('a name without an address is refused, and a name server failure is reported', async () => {
  assert.equal(await refused('http://example.com/', strict()), 'example.com has no address');
  const failing = { ...strict(), resolve: () => Promise.reject(new Error('no name server')) };
  await assert.rejects(resolveTarget('http://example.com/', failing), /no name server/);
});

test('an IP address is not resolved, and any port is allowed', async () => {
  const rules = { ...loose, resolve: () => assert.fail('looked up') };
  const { url, addresses } = await resolveTarget('http://[::1]:9/x', rules);
  assert.deepEqual([url.port, addresses], ['9', [{ address: '::1', family: 6 }]]);
});

test('the machine itself is found by its name', async () => {
  const found = await createHostResolver()('localhost');
  assert.ok(found.some(({ address }) => address === '127.0.0.1' || address === '::1'));
});
