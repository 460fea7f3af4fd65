import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { nextChunk } from '../packages/testing/src/load-balancer-fixture.ts';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { deployHandler } from '../packages/testing/src/deploy-handler.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

/**
 * A handler of the OpenAI interface as the worker images have it: the route and the body come in the input;
 * streams are events in text.
 */
const HANDLER = `
interface Input { openai_route: string; openai_input?: { stream?: boolean; messages?: { content: string }[]; slow?: boolean } }
export default async function* ({ input: { openai_route: route, openai_input: body } }: { input: Input }) {
  if (route === '/v1/models') return yield { object: 'list', data: [{ id: 'parrot' }] };
  const words = (body?.messages?.at(-1)?.content ?? '').split(' ');
  if (body?.stream !== true) return yield { object: 'chat.completion', choices: [{ message: { role: 'assistant', content: words.join(' ') } }] };
  for (const word of words) {
    yield 'data: ' + JSON.stringify({ object: 'chat.completion.chunk', choices: [{ delta: { content: word } }] }) + '\\n\\n';
    if (body.slow === true) await new Promise((resolve) => setTimeout(resolve, 60_000));
  }
  yield 'data: [DONE]\\n\\n';
}
`;

describe('the OpenAI interface of a queue endpoint', () => {
  let place: TestDatabase;
  let server: ServerProcess;
  let client: ApiClient;
  let endpoint: string;
  before(async () => {
    place = await createTestDatabase('sqlite');
    server = await startServerProcess(place, { BERTH_RATE_LIMITS: 'off' });
    client = server.client();
    endpoint = await deployHandler(client, 'parrot', HANDLER, { workers: { min: 1, max: 1 } });
  });
  after(async () => {
    await client.call('DELETE', `/v2/serverless/${endpoint}`);
    await server.stop();
    await place.drop();
  });

  const messages = [{ role: 'user', content: 'say it after me' }];
  const streamed = async (body: object): Promise<IncomingMessage> => {
    const asking = request(`${server.url}/v2/${endpoint}/openai/v1/chat/completions`, {
      method: 'POST',
      agent: false,
      headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' },
    });
    asking.end(JSON.stringify({ model: 'parrot', stream: true, messages, ...body }));
    const [response] = (await once(asking, 'response')) as [IncomingMessage];
    return response;
  };

  test('answers lists and completions of a worker that it started', async () => {
    const models = await client.call<{ data: { id: string }[] }>('GET', `/v2/${endpoint}/openai/v1/models`);
    assert.deepEqual([models.status, models.body.data], [200, [{ id: 'parrot' }]]);
    const { status, body } = await client.call<{ choices: { message: { content: string } }[] }>(
      'POST',
      `/v2/${endpoint}/openai/v1/chat/completions`,
      { model: 'parrot', messages },
    );
    assert.deepEqual([status, body.choices[0]?.message.content], [200, 'say it after me']);
  });

  test('streams a completion as events, to the last one', async () => {
    const response = await streamed({});
    assert.deepEqual(
      [response.statusCode, String(response.headers['content-type']).split(';')[0]],
      [200, 'text/event-stream'],
    );
    let text = '';
    for await (const chunk of response) text += String(chunk);
    const events = text
      .trim()
      .split('\n\n')
      .map((event) => event.replace(/^data: /, ''));
    assert.equal(events.pop(), '[DONE]');
    assert.deepEqual(
      events.map(
        (event) =>
          (JSON.parse(event) as { choices: { delta: { content: string } }[] }).choices[0]?.delta.content,
      ),
      ['say', 'it', 'after', 'me'],
    );
  });

  test('passes a piece on while the rest is still made, and cancels the job of a client that goes away', async () => {
    const response = await streamed({ slow: true });
    assert.match(await nextChunk(response), /"content":"say"/);
    response.destroy();
    await waitFor(
      'the job is cancelled',
      async () =>
        (await client.call<{ jobs: { inProgress: number } }>('GET', `/v2/${endpoint}/health`)).body.jobs
          .inProgress === 0,
    );
  });
});
