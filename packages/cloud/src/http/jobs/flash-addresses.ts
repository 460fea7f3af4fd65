import type { Flash } from '../../resources/flash/flash.ts';
import type { Gate } from '../../resources/keys/gate.ts';
import { BerthError } from '../../support/errors.ts';
import { bearerOrBareKey } from '../bearer.ts';
import type { Request } from '../raw.ts';
import { jobAddress } from './address.ts';
import type { JobAddress } from './address.ts';

const PREFIX = /^\/v2\/+flash\//;

/** flash calls what it has deployed by names: `/v2/flash/runsync`, with the app, the environment and the endpoint in headers. It is a job like any other. */
export class FlashAddresses {
  readonly #gate: Gate;
  readonly #flash: Flash;

  constructor(gate: Gate, flash: Flash) {
    this.#gate = gate;
    this.#flash = flash;
  }

  handles(url: string): boolean {
    return PREFIX.test(url);
  }

  async resolve(request: Request): Promise<JobAddress> {
    const { accountId } = await this.#gate.identify(bearerOrBareKey(request.headers.authorization));
    const endpointId = await this.#flash.endpointNamed(accountId, {
      app: nameIn(request, 'x-flash-app'),
      environment: nameIn(request, 'x-flash-environment'),
      endpoint: nameIn(request, 'x-flash-endpoint'),
    });
    const address = jobAddress((request.url ?? '').replace(PREFIX, `/v2/${endpointId}/`));
    if (address === undefined) throw new BerthError('no-route', 'no such address');
    return address;
  }
}

function nameIn({ headers }: Request, header: string): string {
  const value = headers[header];
  if (typeof value !== 'string' || value === '')
    throw new BerthError(
      'rule',
      `the header ${header} is missing: /v2/flash is for clients that name an app, an environment and an endpoint`,
    );
  return value;
}
