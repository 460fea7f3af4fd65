import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import { Authenticator } from '../../auth/authenticator.ts';
import { OpenAccesses } from '../../auth/open-access.ts';
import type { ApiKey } from '../../domain/records.ts';
import { EndpointCache } from '../../resources/endpoints/endpoint-cache.ts';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.fixture.ts';
import { createLog } from '../../support/log.ts';
import type { JobRoutesDeps } from './job-operation.ts';
import { JobRoutes } from './jobs.routes.ts';

/** The account is the key. */
class AccountByKey extends Authenticator {
  override async authenticate(key: string): Promise<ApiKey> {
    return { accountId: key, access: 'all', expiresAt: null } as ApiKey;
  }
}

/** The job API on a queue. A key is the name of its account, which has one endpoint, of the same name. */
export function jobRoutes(
  context: ServiceContext,
  deps: Pick<JobRoutesDeps, 'queue'> & Partial<JobRoutesDeps>,
): JobRoutes {
  return new JobRoutes({
    webhooks: undefined as never,
    endpoints: new EndpointCache(
      { findInAnyAccount: async (id) => ({ ...sampleEndpoint, id, accountId: id }) },
      context.clock,
    ),
    authenticator: new AccountByKey(context),
    openAccesses: new OpenAccesses(context),
    rateLimits: undefined,
    log: createLog({ level: 'silent', format: 'json' }),
    noWorkersReason: () => undefined,
    ...deps,
  });
}
