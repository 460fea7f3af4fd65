import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import { Authenticator } from '../../auth/authenticator.ts';
import { OpenAccesses } from '../../auth/open-access.ts';
import type { ApiKey } from '../../domain/records.ts';
import { queueFixtures } from '../../queue/job-queue.fixture.ts';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.fixture.ts';
import { EndpointCache } from '../../resources/endpoints/endpoint-cache.ts';
import { createLog } from '../../support/log.ts';
import type { BasicRequest, BasicResponse } from '../raw-http.ts';
import { parseJobUrl } from './job-url.ts';
import type { JobUrl } from './job-url.ts';
import { JobRoutes } from './jobs.routes.ts';
import { REQUESTS_PER_TURN } from './request-turns.ts';

/** The key is the name of its account. */
class NamedAccounts extends Authenticator {
  override async authenticate(key: string): Promise<ApiKey> {
    return { accountId: key, access: 'all' } as ApiKey;
  }
}

describe('many requests of one account that arrive together', () => {
  const bench = queueFixtures('sqlite');

  test('are served in turns with those of others', async (t) => {
    const context = await createServiceContext();
    t.after(() => context.close());
    const { queue } = bench();
    const routes = new JobRoutes({
      queue,
      webhooks: undefined as never,
      endpoints: new EndpointCache(
        { findInAnyAccount: async (id) => ({ ...sampleEndpoint, id, accountId: id }) },
        context.clock,
      ),
      authenticator: new NamedAccounts(context),
      openAccesses: new OpenAccesses(context),
      rateLimits: undefined,
      log: createLog({ level: 'silent', format: 'json' }),
      noWorkersReason: () => undefined,
    });
    const answered: string[] = [];
    const run = (account: string): Promise<void> => {
      const request = {
        method: 'POST',
        url: `/v2/${account}/run`,
        headers: { authorization: `Bearer ${account}` },
        body: '{"input":1}',
        socket: { destroySoon: () => undefined },
      };
      const response = {
        writeHead: (status: number) => assert.equal(status, 200),
        end: () => answered.push(account),
        on: () => undefined,
      };
      return routes.serve(
        request as unknown as BasicRequest,
        response as unknown as BasicResponse,
        parseJobUrl(request.url) as JobUrl,
      );
    };
    const all = [...Array.from({ length: 1_000 }, () => run('flooder')), run('other')];
    await Promise.all(all);
    assert.equal(answered.length, 1_001);
    assert.ok(answered.indexOf('other') <= REQUESTS_PER_TURN, `${answered.indexOf('other')} came before`);
  });
});
