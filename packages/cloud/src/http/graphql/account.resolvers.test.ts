import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startGraphqlFixture } from './graphql.fixture.ts';
import type { GraphqlFixture } from './graphql.fixture.ts';

const ED25519 = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBerth one@berth';
const RSA = 'ssh-rsa AAAAB3NzaC1yc2EAAAABerth two@berth';

describe('the account', () => {
  let berth: GraphqlFixture;
  before(async () => {
    berth = await startGraphqlFixture();
  });
  after(() => berth.close());

  test('has the values of a self-hosted installation', async () => {
    const answer = await berth.ask(`{ myself {
      id authId email pubKey clientBalance currentSpendPerHr clientLifetimeSpend spendLimit minBalance
      underBalance machineQuota maxServerlessConcurrency
      notifyPodsStale notifyPodsGeneral notifyLowBalance notifyOther signedTermsOfService multiFactorEnabled
      isTeam datacenters { id }
    } }`);
    assert.deepEqual(answer.data, {
      myself: {
        id: 'root',
        authId: 'root',
        email: null,
        pubKey: '',
        clientBalance: 0,
        currentSpendPerHr: 0,
        clientLifetimeSpend: 0,
        spendLimit: null,
        minBalance: 0,
        underBalance: false,
        machineQuota: null,
        maxServerlessConcurrency: null,
        notifyPodsStale: false,
        notifyPodsGeneral: false,
        notifyLowBalance: false,
        notifyOther: false,
        signedTermsOfService: true,
        multiFactorEnabled: false,
        isTeam: false,
        datacenters: [{ id: 'LOCAL-1' }, { id: 'EU-RO-1' }],
      },
    });
  });

  test('is that of the key', async () => {
    const key = await berth.account('another');
    const { data } = await berth.ask('{ myself { id } }', { key });
    assert.notEqual((data as { myself: { id: string } }).myself.id, 'root');
  });

  test('keeps SSH keys as one text, and empty removes them all', async () => {
    const set =
      'mutation ($input: UpdateUserSettingsInput) { updateUserSettings(input: $input) { id pubKey } }';
    const pubKey = async (input: Record<string, unknown>): Promise<unknown> =>
      ((await berth.ask(set, { variables: { input } })).data as { updateUserSettings: { pubKey: string } })
        .updateUserSettings.pubKey;
    assert.equal(await pubKey({ pubKey: `${ED25519}\n\n${RSA}\n` }), `${ED25519}\n\n${RSA}`);
    assert.equal(await pubKey({ notifyOther: true }), `${ED25519}\n\n${RSA}`, 'what is not said stays');
    assert.equal(await pubKey({ pubKey: null }), `${ED25519}\n\n${RSA}`, 'null says nothing');
    assert.deepEqual(
      (
        await berth.resources.accounts.getOwn({
          accountId: 'root',
          keyId: null,
          operator: true,
          fullAccess: true,
          interface: 'system',
          requestId: '',
        })
      ).sshKeys,
      [ED25519, RSA],
    );
    assert.equal(await pubKey({ pubKey: '' }), '');
    assert.deepEqual(
      (await berth.ask('mutation { updateUserSettings(input: {pubKey: ""}) { pubKey } }')).data,
      { updateUserSettings: { pubKey: '' } },
    );
  });

  test('refuses what is no public key', async () => {
    const answer = await berth.ask(
      'mutation { updateUserSettings(input: {pubKey: "-----BEGIN PRIVATE KEY-----"}) { id } }',
    );
    assert.equal(answer.code, 'RULE');
    assert.match(answer.message, /SSH key 1 must be a public key line/);
  });

  test('writes down what changed through which interface', async () => {
    await berth.ask(`mutation { updateUserSettings(input: {pubKey: "${RSA}"}) { id } }`);
    const [entry] = await berth.resources.accounts.audit(
      {
        accountId: 'root',
        keyId: null,
        operator: true,
        fullAccess: true,
        interface: 'system',
        requestId: '',
      },
      { limit: 1 },
    );
    assert.equal(entry?.interface, 'graphql');
    assert.equal(entry.resource, 'account');
    assert.notEqual(entry.keyId, null);
  });
});
