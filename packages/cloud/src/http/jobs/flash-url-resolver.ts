import type { FlashApps } from '../../resources/flash/flash-apps.ts';
import type { Authenticator } from '../../auth/authenticator.ts';
import { BerthError } from '../../support/errors.ts';
import { bearerOrBareKey } from '../../auth/bearer.ts';
import type { Request } from '../raw-http.ts';
import { parseJobUrl } from './job-url.ts';
import type { JobUrl } from './job-url.ts';

const PREFIX = /^\/v2\/+flash\//;

/**
 * flash calls endpoints by name: `/v2/flash/runsync`, with the app, the environment and the endpoint in
 * headers.
 */
export class FlashUrlResolver {
  readonly #authenticator: Authenticator;
  readonly #flash: FlashApps;

  constructor(authenticator: Authenticator, flash: FlashApps) {
    this.#authenticator = authenticator;
    this.#flash = flash;
  }

  handles(url: string): boolean {
    return PREFIX.test(url);
  }

  async resolve(request: Request): Promise<JobUrl> {
    const { accountId } = await this.#authenticator.authenticate(
      bearerOrBareKey(request.headers.authorization),
    );
    const endpointId = await this.#flash.findEndpointId(accountId, {
      app: requiredHeader(request, 'x-flash-app'),
      environment: requiredHeader(request, 'x-flash-environment'),
      endpoint: requiredHeader(request, 'x-flash-endpoint'),
    });
    const address = parseJobUrl((request.url ?? '').replace(PREFIX, `/v2/${endpointId}/`));
    if (address === undefined) throw new BerthError('no-route', 'no such address');
    return address;
  }
}

function requiredHeader({ headers }: Request, header: string): string {
  const value = headers[header];
  if (typeof value !== 'string' || value === '')
    throw new BerthError(
      'rule',
      `the header ${header} is missing: /v2/flash is for clients that name an app, an environment and an endpoint`,
    );
  return value;
}
