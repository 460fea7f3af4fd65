import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createTestCertificate } from '../../packages/testing/src/test-certificate.ts';
import { createTestDatabase } from '../../packages/testing/src/test-database.ts';
import { createPersona } from './persona.fixture.ts';

test('an operator runs a server with PostgreSQL and HTTPS, backs it up and has it checked', async (t) => {
  const database = await createTestDatabase('postgres');
  t.after(() => database.drop());
  const { folder, url, env, watch, startServer } = await createPersona(t, 'https');
  const { certificate, key } = createTestCertificate([], 90);
  watch.read('README.md', '', 'First result in one minute');
  watch.read('docs/quick-start.md', 'On a server', 'On many machines');
  watch.read('docs/tls.md', '', 'Certificate files', 'Clients and private certificate authorities');
  watch.read('docs/backup.md', 'Backup', 'Scheduled backups');
  watch.read('docs/quotas.md', 'Set and see them');
  writeFileSync(join(folder, 'certificate.pem'), certificate);
  writeFileSync(join(folder, 'key.pem'), key);
  watch.write(
    join(folder, 'berth.yaml'),
    `database: ${database.url}
tls:
  certificate: certificate.pem
  key: key.pem
backup:
  target: ${join(folder, 'backups')}
limits:
  account: { jobHours: 24, logHours: 48 }
`,
  );
  assert.match(await startServer('--config berth.yaml'), /https:/);
  const own = { cwd: folder, env: { ...env, NODE_EXTRA_CA_CERTS: join(folder, 'certificate.pem') } };
  const typed = { ...own, env: { ...own.env, BERTH_CONFIG: 'berth.yaml' } };

  await watch.type('berth account create team --json', own);
  assert.match(await watch.type('berth account limits team', own), /jobHours +- +24 h/);
  assert.match(await watch.type(`curl -sf --cacert certificate.pem ${url}/readyz`, own), /./);
  await watch.type('berth deploy examples/echo', own);
  await watch.type(`berth run echo '{"n": 1}' --sync`, own);

  await watch.type('berth backup berth.tar', own);
  const listed = await watch.type('tar tf berth.tar', own);
  assert.match(listed, /manifest\.json/);
  const { checks } = JSON.parse(await watch.type('berth doctor --json', typed)) as {
    checks: { check: string; ok: boolean; found: string }[];
  };
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [],
  );
  for (const name of ['disk', 'certificate files', 'server', 'backups', 'retention', 'images'])
    assert.ok(
      checks.some(({ check }) => check === name),
      `${name} is not among ${checks.map(({ check }) => check).join(', ')}`,
    );
  await watch.type('berth rm echo --yes', own);
  watch.assertWithinMinutes(10);
});
