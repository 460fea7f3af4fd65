import { CliError } from './cli.errors.ts';

/** What went wrong on the way to the server, and what to do, by the code of Node's error. */
const CAUSES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused, nothing listens there; start it with "npm start" or set BERTH_URL',
  ENOTFOUND: 'the name of the server is not known; check BERTH_URL',
  EAI_AGAIN: 'the name of the server cannot be looked up now; check the network and BERTH_URL',
  EHOSTUNREACH: 'no route leads there; check the network and BERTH_URL',
  ENETUNREACH: 'no route leads there; check the network and BERTH_URL',
  ETIMEDOUT: 'no connection within the time; a firewall may drop it',
  UND_ERR_CONNECT_TIMEOUT: 'no connection within the time; a firewall may drop it',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'TLS: its certificate is self-signed; name it in NODE_EXTRA_CA_CERTS=FILE',
  SELF_SIGNED_CERT_IN_CHAIN:
    'TLS: its certificate is of an authority that is not known here; name that in NODE_EXTRA_CA_CERTS=FILE',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    'TLS: its certificate is of an authority that is not known here; name that in NODE_EXTRA_CA_CERTS=FILE',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    'TLS: its certificate is of an authority that is not known here; name that in NODE_EXTRA_CA_CERTS=FILE',
  CERT_HAS_EXPIRED: 'TLS: its certificate has expired; renew it on the server',
  CERT_NOT_YET_VALID: 'TLS: its certificate is not valid yet; check the clock of this machine',
  ERR_TLS_CERT_ALTNAME_INVALID: 'TLS: its certificate is for another name than the one in BERTH_URL',
  ERR_SSL_WRONG_VERSION_NUMBER: 'TLS: the server speaks plain HTTP there; write http:// in place of https://',
  ERR_SSL_PACKET_LENGTH_TOO_LONG:
    'TLS: the server speaks plain HTTP there; write http:// in place of https://',
  EPROTO: 'TLS: the server and this program do not agree; check whether the address begins with https://',
  HPE_INVALID_CONSTANT: 'what answers there does not speak HTTP; check the port in BERTH_URL',
  UND_ERR_SOCKET:
    'the connection was closed before an answer; where TLS is on, the address begins with https://',
  ECONNRESET: 'the connection was closed before an answer; where TLS is on, the address begins with https://',
};

/** No answer came: why. */
export function connectionError(url: string, cause: unknown): CliError {
  const code = codes(cause).find((found) => CAUSES[found] !== undefined);
  const reason = code === undefined ? 'start it with "npm start" or set BERTH_URL' : CAUSES[code];
  return new CliError(`Berth does not answer at ${url}; ${reason}`, { cause });
}

/** An answer came where a WebSocket was asked for, and not from Berth. */
export function noUpgradeError(url: string, status: number): CliError {
  return new CliError(
    `${url} answered ${status} in place of a WebSocket: a proxy in front of Berth does not pass on the ` +
      'headers Upgrade and Connection; see docs/troubleshooting.md',
  );
}

/** The codes of an error, of its causes, and of what it consists of. */
function codes(error: unknown): string[] {
  if (typeof error !== 'object' || error === null) return [];
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown[] };
  return [...(typeof code === 'string' ? [code] : []), ...codes(cause), ...(errors ?? []).flatMap(codes)];
}
