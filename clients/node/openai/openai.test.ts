import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { npmFile } from '../../support/npm-client.mjs';
import { clientFixture } from '../../../packages/testing/src/client-fixture.ts';
import { deployHandler } from '../../../packages/testing/src/deploy-handler.ts';
import { TOOL_CALLING_HANDLER } from '../../support/tool-calling-handler.ts';

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

interface ToolCall {
  index: number;
  id?: string;
  function?: { name?: string; arguments?: string };
}

interface Chat {
  choices: {
    message: { content: string };
    delta: { content?: string; tool_calls?: ToolCall[] };
    finish_reason: string | null;
  }[];
}

interface OpenAi {
  models: { list(): Promise<{ data: { id: string }[] }> };
  chat: { completions: { create(body: Record<string, unknown>): Promise<Chat & AsyncIterable<Chat>> } };
}

interface OpenAiModule {
  default: new (options: { apiKey: string; baseURL: string; maxRetries?: number }) => OpenAi;
}

/** A tool as it is offered to the model. */
const SHOUT = {
  type: 'function',
  function: {
    name: 'shout',
    description: 'Says it louder.',
    parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  },
};

describe("OpenAI's JavaScript client", () => {
  const fixture = clientFixture();
  let open: (key?: string) => OpenAi;
  let withTools: OpenAi;
  before(async () => {
    const { default: Client } = (await import(
      pathToFileURL(npmFile('openai-node', 'openai/index.mjs')).href
    )) as OpenAiModule;
    const deploy = async (handler: string): Promise<string> => {
      const id = await deployHandler(fixture.client, 'parrot', handler, { workers: { min: 1, max: 1 } });
      return `${fixture.server.url}/v2/${id}/openai/v1`;
    };
    const baseURL = await deploy(HANDLER);
    open = (apiKey = fixture.server.key) => new Client({ apiKey, baseURL, maxRetries: 0 });
    withTools = new Client({
      apiKey: fixture.server.key,
      baseURL: await deploy(TOOL_CALLING_HANDLER),
      maxRetries: 0,
    });
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

  test('streams the arguments of a tool in pieces, and takes its result', async () => {
    const request = { model: 'parrot', stream: true, tools: [SHOUT] };
    const [call, pieces] = [
      { id: '', type: 'function', function: { name: '', arguments: '' } },
      [] as string[],
    ];
    let finished: string | null = null;
    for await (const { choices } of await withTools.chat.completions.create({ ...request, messages })) {
      finished = choices[0]?.finish_reason ?? finished;
      for (const part of choices[0]?.delta.tool_calls ?? []) {
        assert.equal(part.index, 0);
        call.id += part.id ?? '';
        call.function.name += part.function?.name ?? '';
        pieces.push(part.function?.arguments ?? '');
      }
    }
    call.function.arguments = pieces.join('');
    assert.deepEqual([finished, call.id, call.function.name], ['tool_calls', 'call_1', 'shout']);
    assert.ok(pieces.length > 2, 'the arguments came in pieces');
    const { text } = JSON.parse(call.function.arguments) as { text: string };
    assert.equal(text, 'say it after me');
    const words: string[] = [];
    for await (const { choices } of await withTools.chat.completions.create({
      ...request,
      messages: [
        ...messages,
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: call.id, content: text.toUpperCase() },
      ],
    }))
      words.push(choices[0]?.delta.content ?? '');
    assert.equal(words.join(''), 'SAY IT AFTER ME');
  });

  test('a wrong key is an error of its own kind', async () => {
    await assert.rejects(open('rpa_WRONG').models.list(), { status: 401 });
  });
});
