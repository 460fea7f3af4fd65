import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A certificate that vouches for itself, with its key, both in PEM. */
export interface TestCertificate {
  certificate: string;
  key: string;
}

/** For localhost and 127.0.0.1, and these names before them. */
export function createTestCertificate(names: readonly string[] = [], days = 2): TestCertificate {
  const folder = mkdtempSync(join(tmpdir(), 'berth-certificate-'));
  const file = (name: string): string => join(folder, name);
  const alternatives = [...names, 'localhost'].map((name) => `DNS:${name}`).join(',');
  try {
    execFileSync(
      'openssl',
      [
        ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'],
        ...['-days', String(days), '-subj', '/CN=berth test'],
        ...['-addext', `subjectAltName=${alternatives},IP:127.0.0.1`],
        ...['-keyout', file('key.pem'), '-out', file('certificate.pem')],
      ],
      { stdio: 'pipe' },
    );
    return {
      certificate: readFileSync(file('certificate.pem'), 'utf8'),
      key: readFileSync(file('key.pem'), 'utf8'),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
