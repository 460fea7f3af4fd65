import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { readKubeconfig } from './kubeconfig.ts';
import { readServiceAccount } from './service-account.ts';

describe('the credentials of a cluster', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-kubeconfig-'));
  after(() => rmSync(folder, { recursive: true }));
  const write = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const config = (user: object, cluster: object = {}): string =>
    write(
      'config',
      JSON.stringify({
        clusters: [{ name: 'c', cluster: { server: 'https://api.example.com:6443', ...cluster } }],
        users: [{ name: 'u', user }],
        contexts: [
          { name: 'one', context: { cluster: 'c', user: 'u', namespace: 'mine' } },
          { name: 'lost', context: { cluster: 'none', user: 'u' } },
        ],
        'current-context': 'one',
      }),
    );

  test('a token, a certificate in the file, a file beside it', async () => {
    write('ca.crt', 'the authority');
    const access = await readKubeconfig(config({ token: 'T' }, { 'certificate-authority': 'ca.crt' }));
    assert.deepEqual([access.server, access.namespace], ['https://api.example.com:6443', 'mine']);
    const { authorization, tls } = await access.credentials();
    assert.deepEqual(
      [authorization, String(tls.ca), tls.rejectUnauthorized],
      ['Bearer T', 'the authority', true],
    );
    const inline = { 'client-certificate-data': btoa('cert'), 'client-key-data': btoa('key') };
    const withCertificate = await (await readKubeconfig(config(inline))).credentials();
    assert.deepEqual([String(withCertificate.tls.cert), withCertificate.authorization], ['cert', undefined]);
  });

  test('a program that prints credentials, again when they were refused', async () => {
    const program = write(
      'plugin',
      `#!/bin/sh\necho run >>${join(folder, 'runs')}\nn=$(wc -l <${join(folder, 'runs')})\necho ` +
        `'{"kind": "ExecCredential", "status": {"token": "'$MARK$((n))'"}}'\n`,
    );
    chmodSync(program, 0o700);
    const access = await readKubeconfig(
      config({ exec: { command: './plugin', env: [{ name: 'MARK', value: 't' }] } }),
    );
    assert.equal((await access.credentials()).authorization, 'Bearer t1');
    assert.equal((await access.credentials()).authorization, 'Bearer t1');
    access.forgetCredentials();
    assert.equal((await access.credentials()).authorization, 'Bearer t2');
    const failing = await readKubeconfig(config({ exec: { command: 'no-such-plugin' } }));
    await assert.rejects(failing.credentials(), /no-such-plugin.* gave no credentials/);
  });

  test('what cannot be used is said', async () => {
    await assert.rejects(readKubeconfig(join(folder, 'absent')), /cannot be used: ENOENT/);
    await assert.rejects(readKubeconfig(config({}), 'other'), /no context "other" \(it has: one, lost\)/);
    await assert.rejects(readKubeconfig(config({}), 'lost'), /no usable cluster "none"/);
    await assert.rejects(readKubeconfig(config({ 'auth-provider': {} })), /auth-provider is not supported/);
    await assert.rejects(readKubeconfig(write('broken', 'a: [')), /it is not valid YAML/);
  });

  test('the service account of a pod', async () => {
    await assert.rejects(readServiceAccount({}), /does not run in a cluster/);
    write('token', 'abc\n');
    write('namespace', 'berth\n');
    write('ca.crt', 'authority');
    const access = await readServiceAccount(
      { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' },
      folder,
    );
    assert.deepEqual([access.server, access.namespace], ['https://10.0.0.1:443', 'berth']);
    assert.equal((await access.credentials()).authorization, 'Bearer abc');
  });
});
