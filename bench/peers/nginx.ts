import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../packages/testing/src/free-port.ts';
import { startProgram } from '../support/child-program.ts';
import type { CleanupScope } from '../support/cleanup-scope.ts';

/** Debian installs it in a folder that only root's PATH contains. */
const PLACES = ['nginx', '/usr/sbin/nginx'];

export interface Nginx {
  command: string;
  version: string;
}

export function findNginx(): Nginx | undefined {
  for (const command of PLACES) {
    const { error, stderr } = spawnSync(command, ['-v']);
    if (error === undefined) return { command, version: /nginx\/(\S+)/.exec(stderr.toString())?.[1] ?? '' };
  }
  return undefined;
}

/**
 * nginx as a plain proxy in front of one server: one process, and connections that are kept on both sides.
 */
export async function startNginx(
  { command }: Nginx,
  scope: CleanupScope,
  upstreamPort: number,
): Promise<string> {
  const folder = scope.folder('nginx');
  mkdirSync(join(folder, 'temporary'));
  const port = await freePort();
  writeFileSync(join(folder, 'nginx.conf'), configuration(folder, port, upstreamPort));
  // It speaks on standard error only.
  const program = await startProgram({
    command: 'sh',
    args: ['-c', 'exec "$0" "$@" 2>&1', command, '-p', folder, '-c', join(folder, 'nginx.conf')],
    ready: /start worker process \d+/,
  });
  scope.defer(program.stop);
  return `http://127.0.0.1:${port}`;
}

function configuration(folder: string, port: number, upstreamPort: number): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `  ${name}_temp_path ${folder}/temporary;`)
    .join('\n');
  return `daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr notice;
events {
  worker_connections 1024;
}
http {
  access_log off;
${temporary}
  keepalive_requests 100000000;
  upstream worker {
    server 127.0.0.1:${upstreamPort};
    keepalive 128;
    keepalive_requests 100000000;
  }
  server {
    listen 127.0.0.1:${port};
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Forwarded-Proto $scheme;
    location / {
      proxy_pass http://worker;
    }
    location ~ ^/(events|back) {
      proxy_pass http://worker;
      proxy_buffering off;
      proxy_request_buffering off;
    }
  }
}
`;
}
