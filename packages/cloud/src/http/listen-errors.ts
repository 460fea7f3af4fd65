import { BerthError } from '../support/errors.ts';

const PORT_HINT = 'choose another with --port or BERTH_PORT';
const HOST_HINT = 'choose another with --host or BERTH_HOST';

/** Why the server cannot listen, with the setting to change. Other errors are returned unchanged. */
export function toListenError(cause: unknown, host: string, port: number, setting?: string): unknown {
  const hint = setting === undefined ? undefined : `choose another with ${setting}`;
  const words = listenErrorMessage((cause as NodeJS.ErrnoException).code, host, port, hint);
  return words === undefined ? cause : new BerthError('unavailable', words, { cause });
}

function listenErrorMessage(
  code: string | undefined,
  host: string,
  port: number,
  hint: string | undefined,
): string | undefined {
  const portHint = hint ?? PORT_HINT;
  const hostHint = hint ?? HOST_HINT;
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} of ${host} is taken; ${portHint}`;
    case 'EACCES':
      return `port ${port} of ${host} is not open to this user (EACCES); ${portHint}`;
    case 'EADDRNOTAVAIL':
      return `the host ${host} is not an address of this machine (${code}); ${hostHint}`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the host ${host} is not known (${code}); ${hostHint}`;
    default:
      return undefined;
  }
}
