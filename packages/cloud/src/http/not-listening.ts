import { BerthError } from '../support/errors.ts';

const OTHER_PORT = 'choose another with --port or BERTH_PORT';
const OTHER_HOST = 'choose another with --host or BERTH_HOST';

/** Why the server cannot listen, with the knob that mends it. What is not known here stays as it is. */
export function notListening(cause: unknown, host: string, port: number): unknown {
  const words = whyNot((cause as NodeJS.ErrnoException).code, host, port);
  return words === undefined ? cause : new BerthError('unavailable', words, { cause });
}

function whyNot(code: string | undefined, host: string, port: number): string | undefined {
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} of ${host} is taken; ${OTHER_PORT}`;
    case 'EACCES':
      return `port ${port} of ${host} is not open to this user (EACCES); ${OTHER_PORT}`;
    case 'EADDRNOTAVAIL':
      return `the host ${host} is not an address of this machine (${code}); ${OTHER_HOST}`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the host ${host} is not known (${code}); ${OTHER_HOST}`;
    default:
      return undefined;
  }
}
