import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { documentationCode } from '../../support/documentation-code.ts';
import { npmFile } from '../../support/npm-client.mjs';
import { clientFixture } from '../../../packages/testing/src/client-fixture.ts';
import { deployHandler } from '../../../packages/testing/src/deploy-handler.ts';
import { TOOL_CALLING_HANDLER } from '../../support/tool-calling-handler.ts';

interface ToolCall {
  toolName: string;
  input: unknown;
}

interface AiModule {
  generateText(request: Record<string, unknown>): Promise<{ text: string; toolCalls: ToolCall[] }>;
  streamText(request: Record<string, unknown>): {
    textStream: AsyncIterable<string>;
    toolCalls: Promise<ToolCall[]>;
  };
  tool(definition: Record<string, unknown>): unknown;
  jsonSchema(schema: Record<string, unknown>): unknown;
}

interface ProviderModule {
  createOpenAICompatible(options: Record<string, unknown>): (model: string) => unknown;
}

describe('the Vercel AI SDK on the OpenAI route', () => {
  const fixture = clientFixture();
  let endpointId: string;
  let ai: AiModule;
  let model: unknown;
  let tools: Record<string, unknown>;
  before(async () => {
    const load = (file: string): Promise<unknown> =>
      import(pathToFileURL(npmFile('ai-sdk', file)).href) as Promise<unknown>;
    ai = (await load('ai/dist/index.js')) as AiModule;
    const { createOpenAICompatible } = (await load(
      '@ai-sdk/openai-compatible/dist/index.js',
    )) as ProviderModule;
    endpointId = await deployHandler(fixture.client, 'parrot', TOOL_CALLING_HANDLER, {
      workers: { min: 1, max: 1 },
    });
    const baseURL = `${fixture.server.url}/v2/${endpointId}/openai/v1`;
    model = createOpenAICompatible({ name: 'berth', baseURL, apiKey: fixture.server.key })('parrot');
    const inputSchema = ai.jsonSchema({
      type: 'object',
      properties: { text: { type: 'string' } },
      required: ['text'],
    });
    tools = { shout: ai.tool({ description: 'Says it louder.', inputSchema }) };
  });

  test('generates text', async () => {
    assert.equal((await ai.generateText({ model, prompt: 'say it after me' })).text, 'say it after me');
  });

  test('runs what its page says', async () => {
    const { url, key } = fixture.server;
    const code = documentationCode('frameworks.md', 'js', 0, { url, key, endpointId });
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], {
      cwd: npmFile('ai-sdk', ''),
    });
    assert.equal(stdout, 'say it after me\nword by word');
  });

  test('streams text', async () => {
    const pieces: string[] = [];
    for await (const piece of ai.streamText({ model, prompt: 'word by word' }).textStream) pieces.push(piece);
    assert.deepEqual(pieces, ['word ', 'by ', 'word']);
  });

  const expected = { toolName: 'shout', input: { text: 'hello there' } };

  test('calls a tool', async () => {
    const { toolCalls } = await ai.generateText({ model, prompt: 'hello there', tools });
    assert.deepEqual(
      toolCalls.map(({ toolName, input }) => ({ toolName, input })),
      [expected],
    );
  });

  test('calls a tool whose arguments are streamed in pieces', async () => {
    const answer = ai.streamText({ model, prompt: 'hello there', tools });
    for await (const piece of answer.textStream) assert.equal(piece, '');
    const toolCalls = await answer.toolCalls;
    assert.deepEqual(
      toolCalls.map(({ toolName, input }) => ({ toolName, input })),
      [expected],
    );
  });
});
