import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { npmFile } from '../../support/npm-client.mjs';
import { clientFixture } from '../../../packages/testing/src/client-fixture.ts';
import { deployHandler } from '../../../packages/testing/src/deploy-handler.ts';

/**
 * As the common worker images have it: the route and the body come in the input; a stream is events in text.
 */
const HANDLER = `
interface Input { openai_route: string; openai_input?: { stream?: boolean; model?: string; messages?: { content: string }[] } }
export default async function* ({ input: { openai_route: route, openai_input: body } }: { input: Input }) {
  const base = { id: 'chatcmpl-1', created: 1, model: 'parrot' };
  if (route === '/v1/models') return yield { object: 'list', data: [{ id: 'parrot', object: 'model', created: 1, owned_by: 'berth' }] };
  const words = (body?.messages?.at(-1)?.content ?? '').split(' ');
  if (body?.stream !== true) return yield { ...base, object: 'chat.completion', choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: words.join(' ') } }], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } };
  for (const word of words) yield 'data: ' + JSON.stringify({ ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: word }, finish_reason: null }] }) + '\\n\\n';
  yield 'data: [DONE]\\n\\n';
}
`;

interface Chat {
  choices: { message: { content: string }; delta: { content?: string } }[];
}

interface OpenAi {
  models: { list(): Promise<{ data: { id: string }[] }> };
  chat: { completions: { create(body: Record<string, unknown>): Promise<Chat & AsyncIterable<Chat>> } };
}

interface OpenAiModule {
  default: new (options: { apiKey: string; baseURL: string; maxRetries?: number }) => OpenAi;
}

describe("OpenAI's JavaScript client", () => {
  const stage = clientFixture();
  let open: (key?: string) => OpenAi;
  before(async () => {
    const { default: Client } = (await import(
      pathToFileURL(npmFile('openai-node', 'openai/index.mjs')).href
    )) as OpenAiModule;
    const id = await deployHandler(stage.client, 'parrot', HANDLER, { workers: { min: 1, max: 1 } });
    open = (apiKey = stage.server.key) =>
      new Client({ apiKey, baseURL: `${stage.server.url}/v2/${id}/openai/v1`, maxRetries: 0 });
  });

  const messages = [{ role: 'user', content: 'say it after me' }];

  test('lists the models of the worker', async () => {
    assert.deepEqual(
      (await open().models.list()).data.map(({ id }) => id),
      ['parrot'],
    );
  });

  test('completes a chat', async () => {
    const { choices } = await open().chat.completions.create({ model: 'parrot', messages });
    assert.equal(choices[0]?.message.content, 'say it after me');
  });

  test('streams a chat, word by word', async () => {
    const words: unknown[] = [];
    for await (const { choices } of await open().chat.completions.create({
      model: 'parrot',
      messages,
      stream: true,
    }))
      words.push(choices[0]?.delta.content);
    assert.deepEqual(words, ['say', 'it', 'after', 'me']);
  });

  test('a wrong key is an error of its own kind', async () => {
    await assert.rejects(open('rpa_WRONG').models.list(), { status: 401 });
  });
});
