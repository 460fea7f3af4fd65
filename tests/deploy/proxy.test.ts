import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { freePort } from '../../packages/testing/src/free-port.ts';
import { startServerProcess } from '../../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../../packages/testing/src/server-process.ts';
import { createTemporaryFolder } from '../../packages/testing/src/temporary-folder.ts';
import { createTestCertificate } from '../../packages/testing/src/test-certificate.ts';
import { createTestDatabase } from '../../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../../packages/testing/src/test-database.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import { goProgram } from './go-program.ts';
import { proxySuite } from './proxy.suite.ts';
import { leftOut } from './required-parts.ts';

/** The files that people copy, with ports and paths of this test. */
const sample = (name: string): string =>
  readFileSync(new URL(`../../deploy/${name}`, import.meta.url), 'utf8');
const nginxMissing =
  spawnSync('nginx', ['-v']).error !== undefined && leftOut('nginx', 'nginx is not installed');
const caddy = await goProgram('caddy', 'github.com/caddyserver/caddy/v2/cmd/caddy@v2.10.2');

describe('the sample configurations of proxies', () => {
  const own = createTestCertificate();
  const folder = createTemporaryFolder('proxy', { 'c.pem': own.certificate, 'k.pem': own.key });
  const file = (name: string): string => join(folder.path, name);
  let database: TestDatabase;
  let server: ServerProcess;

  before(async () => {
    setDefaultCACertificates([...getCACertificates(), own.certificate]);
    database = await createTestDatabase('sqlite');
    server = await startServerProcess(database, { BERTH_RATE_LIMITS: 'off' });
  });
  after(async () => {
    await server?.stop();
    await database?.drop();
    folder.remove();
  });

  describe('nginx', { skip: nginxMissing }, () => {
    const fixture = proxyStage(
      (http, https) => {
        const conf = sample('nginx/berth.conf')
          .replace('127.0.0.1:8484', new URL(server.url).host)
          .replace('listen 80;', `listen 127.0.0.1:${http};`)
          .replace('listen 443 ssl;', `listen 127.0.0.1:${https} ssl;`)
          .replaceAll('berth.example.com', 'localhost')
          .replace('/etc/nginx/berth/fullchain.pem', file('c.pem'))
          .replace('/etc/nginx/berth/privkey.pem', file('k.pem'));
        mkdirSync(file('temporary'));
        const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
          .map((kind) => `${kind}_temp_path ${file('temporary')}/${kind};`)
          .join(' ');
        folder.write({
          'berth.conf': conf,
          'nginx.conf': `daemon off; user ${process.getuid?.() === 0 ? 'root' : 'nobody'}; pid ${file('pid')}; error_log ${file('error.log')};
            events {} http { access_log off; ${temporary} include ${file('berth.conf')}; }`,
        });
        return spawn('nginx', ['-e', file('error.log'), '-c', file('nginx.conf')], { stdio: 'ignore' });
      },
      () => server,
    );
    proxySuite(fixture);
  });

  describe('Caddy', { skip: 'reason' in caddy && caddy.reason }, () => {
    const fixture = proxyStage(
      (http, https) => {
        folder.write({
          Caddyfile: (
            `{\n\tadmin off\n\thttp_port ${http}\n\thttps_port ` +
            `${https}\n\tskip_install_trust\n}\n${sample('caddy/Caddyfile')}`
          ).replace('reverse_proxy', `tls ${file('c.pem')} ${file('k.pem')}\n\treverse_proxy`),
        });
        return spawn('path' in caddy ? caddy.path : '', ['run', '--config', file('Caddyfile')], {
          stdio: 'ignore',
          env: { HOME: folder.path, BERTH_UPSTREAM: new URL(server.url).host },
        });
      },
      () => server,
    );
    proxySuite(fixture);
  });
});

/** Starts the proxy before the tests of a suite, and ends it after them. */
function proxyStage(
  start: (http: number, https: number) => ChildProcess,
  server: () => ServerProcess,
): Parameters<typeof proxySuite>[0] {
  let proxy: ChildProcess | undefined;
  let ports = [0, 0];
  before(async () => {
    ports = [await freePort(), await freePort()];
    proxy = start(ports[0] ?? 0, ports[1] ?? 0);
    await waitFor(
      'the proxy answers',
      async () => (await fetch(`https://localhost:${ports[1]}/healthz`).catch(() => undefined))?.ok,
    );
  });
  after(async () => {
    if (proxy?.kill() === true) await once(proxy, 'exit');
  });
  return {
    server,
    origin: () => `https://localhost:${ports[1]}`,
    httpOrigin: () => `http://localhost:${ports[0]}`,
  };
}
