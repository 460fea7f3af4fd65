import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import { queueFixtures } from '../../queue/job-queue.fixture.ts';
import { BerthError } from '../../support/errors.ts';
import type { BasicRequest, BasicResponse } from '../raw-http.ts';
import type { JobRateLimits } from './job-rate-limits.ts';
import { jobRoutes } from './job-routes.fixture.ts';
import { parseJobUrl } from './job-url.ts';
import type { JobUrl } from './job-url.ts';
import type { JobRoutes } from './jobs.routes.ts';
import { REQUESTS_PER_TURN } from './request-turns.ts';

describe('one account beside the others', () => {
  const bench = queueFixtures('sqlite');
  let context: ServiceContext;
  before(async () => {
    context = await createServiceContext();
  });
  after(() => context.close());

  /** Submits a job of an account; `onAnswer` gets the status. */
  function run(
    routes: JobRoutes,
    account: string,
    onAnswer: (status: number) => void,
    below = '',
  ): Promise<void> {
    const request = {
      method: 'POST',
      url: `/v2/${account}/run${below}`,
      headers: { authorization: `Bearer ${account}` },
      body: '{"input":1}',
      readableEnded: true,
      socket: { destroySoon: () => undefined },
    };
    let answered = 0;
    const response = {
      writeHead: (status: number) => (answered = status),
      end: () => onAnswer(answered),
      on: () => undefined,
    };
    return routes.serve(
      request as unknown as BasicRequest,
      response as unknown as BasicResponse,
      parseJobUrl(request.url) as JobUrl,
    );
  }

  test('many requests that arrive together are served in turns with those of others', async () => {
    const routes = jobRoutes(context, { queue: bench().queue });
    const answered: string[] = [];
    const submit = (account: string): Promise<void> =>
      run(routes, account, (status) => {
        assert.equal(status, 200);
        answered.push(account);
      });
    await Promise.all([...Array.from({ length: 1_000 }, () => submit('flooder')), submit('other')]);
    assert.equal(answered.length, 1_001);
    assert.ok(answered.indexOf('other') <= REQUESTS_PER_TURN, `${answered.indexOf('other')} came before`);
  });

  test('what is over a limit of its rate is refused after a while, anything else at once', async () => {
    const rateLimits = {
      acquire: () => {
        throw new BerthError('rate', 'too many requests');
      },
    } as unknown as JobRateLimits;
    const routes = jobRoutes(context, { queue: bench().queue, rateLimits });
    const statuses: number[] = [];
    const answer = (status: number): void => void statuses.push(status);
    // From here on the endpoint and the key are known, so that only the refusal itself takes time.
    await run(routes, 'flooder', () => undefined, '/no/such/path');
    await Promise.all([run(routes, 'flooder', answer), run(routes, 'flooder', answer, '/no/such/path')]);
    assert.deepEqual(statuses, [404, 429]);
  });
});
