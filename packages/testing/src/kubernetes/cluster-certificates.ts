import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Identity {
  commonName: string;
  organization?: string;
  /** Such as IP:127.0.0.1. */
  names?: readonly string[];
}

/** A certificate authority of one cluster, with the files that it issues. */
export class ClusterCertificates {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#createKey('ca');
    this.#openssl(
      'req',
      '-x509',
      '-new',
      '-key',
      this.path('ca.key'),
      '-days',
      '30',
      '-subj',
      '/CN=berth-test',
      '-out',
      this.path('ca.crt'),
    );
    // Service-account tokens are signed with this one.
    this.#createKey('sa');
    this.#openssl('ec', '-in', this.path('sa.key'), '-pubout', '-out', this.path('sa.pub'));
  }

  path(file: string): string {
    return join(this.folder, file);
  }

  issue(file: string, { commonName, organization, names = [] }: Identity): void {
    this.#createKey(file);
    const request = this.path(`${file}.csr`);
    const extensions = this.path(`${file}.ext`);
    writeFileSync(
      extensions,
      [
        'keyUsage=critical,digitalSignature',
        'extendedKeyUsage=serverAuth,clientAuth',
        ...(names.length > 0 ? [`subjectAltName=${names.join(',')}`] : []),
        '',
      ].join('\n'),
    );
    const subject = `${organization === undefined ? '' : `/O=${organization}`}/CN=${commonName}`;
    this.#openssl('req', '-new', '-key', this.path(`${file}.key`), '-subj', subject, '-out', request);
    this.#openssl(
      'x509',
      '-req',
      '-in',
      request,
      '-CA',
      this.path('ca.crt'),
      '-CAkey',
      this.path('ca.key'),
      '-CAcreateserial',
      '-days',
      '30',
      '-extfile',
      extensions,
      '-out',
      this.path(`${file}.crt`),
    );
  }

  /** A kubeconfig for one of the issued certificates. */
  kubeconfig(file: string, server: string): string {
    const base64 = (name: string): string => readFileSync(this.path(name)).toString('base64');
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': base64('ca.crt') } }],
      users: [
        {
          name: file,
          user: {
            'client-certificate-data': base64(`${file}.crt`),
            'client-key-data': base64(`${file}.key`),
          },
        },
      ],
      contexts: [{ name: 'test', context: { cluster: 'test', user: file } }],
      'current-context': 'test',
    });
  }

  #createKey(file: string): void {
    this.#openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', this.path(`${file}.key`));
  }

  #openssl(...args: string[]): void {
    execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  }
}
