import { readFile } from 'node:fs/promises';
import { connect } from 'node:tls';
import type { DetailedPeerCertificate } from 'node:tls';
import { readCertificatePair } from '../resources/certificates/certificate-pair.ts';
import type { CheckResult } from '../support/check-result.ts';
import type { Environment } from '../support/config/config-from-environment.ts';
import { loadConfig } from '../support/config/load-config.ts';

const CHECK = 'certificate';
const DAY_MS = 86_400_000;
/** With less left, a renewal has failed. */
const MIN_DAYS_LEFT = 7;
const CONNECT_TIMEOUT_MS = 3_000;

/** The settings of this environment, and the pair that they name: both would stop the next start. */
export async function checkCertificateFiles(env: Environment): Promise<CheckResult[]> {
  let files: { certificate: string; key: string };
  try {
    files = (await loadConfig({ env })).config.tls;
  } catch (error) {
    const remedy = 'Berth does not start with these settings';
    return [{ check: 'configuration', ok: false, found: (error as Error).message, remedy }];
  }
  if (files.certificate === '' || files.key === '') return [];
  const check = 'certificate files';
  try {
    const [certificate, key] = await Promise.all([
      readFile(files.certificate, 'utf8'),
      readFile(files.key, 'utf8'),
    ]);
    readCertificatePair(certificate, key, Date.now(), files);
    return [{ check, ok: true, found: `${files.certificate} and ${files.key} fit together` }];
  } catch (error) {
    const remedy = 'fix tls.certificate and tls.key; Berth does not start with them';
    return [{ check, ok: false, found: (error as Error).message, remedy }];
  }
}

/** The certificate that the server shows; nothing where it speaks no HTTPS. */
export async function checkServedCertificate(url: string, now = Date.now()): Promise<CheckResult[]> {
  const served = await servedCertificate(new URL(url));
  if (served === undefined) return [];
  const until = Date.parse(served.valid_to);
  const names = (served.subjectaltname ?? '').replaceAll(/(?:DNS|IP Address):/g, '');
  const daysLeft = Math.floor((until - now) / DAY_MS);
  const found = `for ${names}, until ${new Date(until).toISOString()} (${daysLeft} days)`;
  if (daysLeft >= MIN_DAYS_LEFT) return [{ check: CHECK, ok: true, found }];
  const remedy = 'renew it: replace the files, or look in the log why ACME did not';
  return [{ check: CHECK, ok: false, found, remedy }];
}

/** Whether clients trust it is not asked here: this is about its names and its end. */
function servedCertificate({ hostname, port }: URL): Promise<DetailedPeerCertificate | undefined> {
  return new Promise((resolve) => {
    const socket = connect(
      { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 443), rejectUnauthorized: false },
      () => {
        resolve(socket.getPeerCertificate(true));
        socket.destroy();
      },
    );
    const none = (): void => {
      resolve(undefined);
      socket.destroy();
    };
    socket.on('error', none).setTimeout(CONNECT_TIMEOUT_MS, none);
  });
}
