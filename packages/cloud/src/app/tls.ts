import { once } from 'node:events';
import { createHttpsRedirects } from '../http/tls/https-redirects.ts';
import { toListenError } from '../http/listen-errors.ts';
import { TlsAcceptor } from '../http/tls/tls-acceptor.ts';
import { AcmeCertificates } from '../resources/certificates/acme/acme-certificates.ts';
import { CertificateFiles } from '../resources/certificates/certificate-files.ts';
import type { CertificateSource } from '../resources/certificates/certificate-source.ts';
import type { Store } from '../store/store.ts';
import type { Config } from '../support/config/config.ts';
import { ConfigError } from '../support/config/config-error.ts';
import type { AppContext } from './app-context.ts';
import type { ServerAddress } from './server-address.ts';

/** HTTPS: the certificate, the acceptor at the main port, and the port that redirects. */
export interface Tls {
  acceptor: TlsAcceptor;
  /** The host name that the certificate is for, to build URLs with. */
  hostName(): string | undefined;
  /** Opens the port that redirects to HTTPS, if one is configured. */
  listen(): Promise<void>;
  start(): void;
  lead(): void;
  follow(): void;
  close(): Promise<void>;
}

/** Undefined where HTTPS is not configured. Rejects where the certificate cannot be used. */
export async function createTls(
  app: AppContext,
  store: Pick<Store, 'acme'>,
  address: ServerAddress,
): Promise<Tls | undefined> {
  const { config, log } = app;
  const { redirectPort, plainFrom, acme } = config.tls;
  checkTlsSettings(config);
  const certificates = await openCertificates(app, store);
  if (certificates === undefined) return undefined;
  const orders = certificates instanceof AcmeCertificates ? certificates : undefined;
  const redirects = createHttpsRedirects({
    httpsPort: () => Number(new URL(address.publicOrigin).port || 443),
    challengeAnswer: async (token) => orders?.challengeAnswer(token),
  });
  return {
    acceptor: new TlsAcceptor({ certificates, redirects, plainFrom, log }),
    hostName: () => [...acme.domains, ...(certificates.current?.names ?? [])].find(isUsableName),
    listen: async () => {
      if (redirectPort === 0) return;
      redirects.listen({ host: config.host, port: redirectPort });
      await once(redirects, 'listening').catch((cause: unknown) => {
        throw toListenError(cause, config.host, redirectPort, 'tls.redirectPort (BERTH_TLS_REDIRECT_PORT)');
      });
    },
    start: () => certificates.start(),
    lead: () => orders !== undefined && (orders.isLeading = true),
    follow: () => orders !== undefined && (orders.isLeading = false),
    close: async () => {
      redirects.closeAllConnections();
      if (redirects.listening) await new Promise((resolve) => redirects.close(resolve));
      await certificates.close();
    },
  };
}

/** Settings that contradict each other stop the start. */
function checkTlsSettings({ tls }: Pick<Config, 'tls'>): void {
  const problems: string[] = [];
  const hasAcme = tls.acme.domains.length > 0;
  if ((tls.certificate === '') !== (tls.key === ''))
    problems.push(
      `tls.${tls.key === '' ? 'certificate' : 'key'} is set alone; set tls.certificate and tls.key`,
    );
  if (hasAcme && tls.certificate !== '')
    problems.push('tls.certificate and tls.acme.domains are both set; choose one');
  if (tls.redirectPort !== 0 && !hasAcme && tls.certificate === '')
    problems.push(
      'tls.redirectPort is set without HTTPS; set tls.certificate and tls.key, or tls.acme.domains',
    );
  if (problems.length > 0) throw new ConfigError(problems);
}

async function openCertificates(
  { config, log, clock }: AppContext,
  { acme: store }: Pick<Store, 'acme'>,
): Promise<CertificateSource | undefined> {
  const { certificate, key, acme } = config.tls;
  if (certificate !== '') return CertificateFiles.open({ certificate, key, log, clock });
  if (acme.domains.length === 0) return undefined;
  return new AcmeCertificates({ ...acme, store, clock, log });
}

function isUsableName(name: string): boolean {
  return !name.startsWith('*.') && name !== 'nobody';
}
