import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { dirname, resolve } from 'node:path';
import { before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { startPython } from '../../../packages/testing/src/python-process.ts';
import { clearedServerFixture } from '../../../packages/testing/src/cleared-server-fixture.ts';
import { deployHandler } from '../../../packages/testing/src/deploy-handler.ts';
import { waitFor } from '../../../packages/testing/src/wait-for.ts';
import { documentationCode } from '../../support/documentation-code.ts';
import { TOOL_CALLING_HANDLER } from '../../support/tool-calling-handler.ts';
import { installedPython, runPythonForJson } from '../python-programs.ts';

const python = installedPython('openai');

const ASKS = `
import asyncio, json, os
import openai

where = {"base_url": os.environ["BASE"], "api_key": os.environ["KEY"]}
client = openai.OpenAI(**where, max_retries=0)
messages = [
    {"role": "system", "content": "you are a parrot"},
    {"role": "user", "content": "Grüße an alle 🎉"},
]
told = {}

told["models"] = [(model.id, model.object) for model in client.models.list()]
whole = client.chat.completions.create(model="parrot", messages=messages, temperature=0.5, max_tokens=100)
choice = whole.choices[0]
told["whole"] = [
    whole.object, choice.message.role, choice.message.content, choice.finish_reason, whole.usage.total_tokens
]
chunks = client.chat.completions.create(model="parrot", messages=messages, stream=True)
told["pieces"] = [chunk.choices[0].delta.content for chunk in chunks]
with client.chat.completions.stream(model="parrot", messages=messages) as stream:
    told["helper"] = stream.get_final_completion().choices[0].message.content
raw = client.chat.completions.with_raw_response.create(model="parrot", messages=messages)
told["type"] = raw.headers["content-type"]

async def later():
    async with openai.AsyncOpenAI(**where) as client:
        create = client.chat.completions.create
        asked = [[{"role": "user", "content": str(number)}] for number in range(5)]
        answers = await asyncio.gather(*(create(model="parrot", messages=one) for one in asked))
        told["together"] = [answer.choices[0].message.content for answer in answers]
        chunks = await create(model="parrot", messages=messages, stream=True)
        told["async"] = "".join([chunk.choices[0].delta.content or "" async for chunk in chunks])
asyncio.run(later())

def refused(call):
    try:
        call()
    except openai.APIStatusError as error:
        return [type(error).__name__, error.status_code, error.body is not None and error.body["message"]]

told["unspoken"] = refused(lambda: client.embeddings.create(model="parrot", input="x"))
told["unspoken_stream"] = refused(lambda: list(client.completions.create(model="parrot", prompt="x", stream=True)))
told["wrong_key"] = refused(lambda: client.with_options(api_key="rpa_WRONG").models.list())
told["nowhere"] = refused(lambda: client.with_options(base_url=os.environ["NOWHERE"]).models.list())
print("SAID " + json.dumps(told))
`;

const LEAVES = `
import os
import openai

client = openai.OpenAI(base_url=os.environ["BASE"], api_key=os.environ["KEY"])
long = [{"role": "user", "content": "word " * 5000}]
with client.chat.completions.create(model="parrot", messages=long, stream=True) as stream:
    for chunk in stream:
        break
print("SAID {}")
`;
const CALLS_A_TOOL = `
import json, os
import openai

client = openai.OpenAI(base_url=os.environ["BASE"], api_key=os.environ["KEY"], max_retries=0)
parameters = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
tools = [{"type": "function", "function": {"name": "shout", "parameters": parameters}}]
messages = [{"role": "user", "content": "Grüße an alle 🎉"}]
told = {"pieces": [], "words": []}

call = None
for chunk in client.chat.completions.create(model="parrot", messages=messages, tools=tools, stream=True):
    for part in chunk.choices[0].delta.tool_calls or []:
        call = call or part
        told["pieces"].append(part.function.arguments)
    told["finished"] = chunk.choices[0].finish_reason
told["call"] = [call.id, call.type, call.function.name]
arguments = "".join(told["pieces"])

calls = [{"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": arguments}}]
messages.append({"role": "assistant", "content": None, "tool_calls": calls})
messages.append({"role": "tool", "tool_call_id": call.id, "content": json.loads(arguments)["text"].upper()})
for chunk in client.chat.completions.create(model="parrot", messages=messages, tools=tools, stream=True):
    told["words"].append(chunk.choices[0].delta.content or "")

with client.chat.completions.stream(model="parrot", messages=messages[:1], tools=tools) as stream:
    told["helper"] = stream.get_final_completion().choices[0].message.tool_calls[0].function.arguments
print("SAID " + json.dumps(told))
`;

describe("OpenAI's Python client", () => {
  const fixture = clearedServerFixture();
  let endpointId: string;
  let env: Record<string, string>;
  before(async () => {
    const made = await fixture.operator.call<{ id: string }>('POST', '/v2/serverless', {
      name: 'parrot',
      type: 'QUEUE',
      image: 'local/openai',
      cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
      scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
      workers: { min: 1, max: 1 },
    });
    assert.equal(made.status, 201, made.text);
    endpointId = made.body.id;
    env = {
      BASE: `${fixture.server.url}/v2/${endpointId}/openai/v1`,
      NOWHERE: `${fixture.server.url}/v2/nosuchendpoint/openai/v1`,
      KEY: fixture.server.key,
    };
  });

  test('lists models, completes, whole and streamed, and tells failures as its own errors', async () => {
    const told = await runPythonForJson(python, ASKS, env);
    assert.deepEqual(told['models'], [['parrot', 'model']]);
    assert.deepEqual(told['whole'], ['chat.completion', 'assistant', 'Grüße an alle 🎉', 'stop', 8]);
    assert.deepEqual(told['pieces'], ['Grüße ', 'an ', 'alle ', '🎉', null]);
    assert.equal(told['helper'], 'Grüße an alle 🎉');
    assert.match(String(told['type']), /^application\/json/);
    assert.deepEqual([told['together'], told['async']], [['0', '1', '2', '3', '4'], 'Grüße an alle 🎉']);
    const unspoken = told['unspoken'] as [string, number, string];
    assert.deepEqual(unspoken.slice(0, 2), ['InternalServerError', 500]);
    assert.match(unspoken[2], /\/v1\/embeddings is not spoken here/);
    assert.deepEqual((told['unspoken_stream'] as unknown[]).slice(0, 2), ['InternalServerError', 500]);
    assert.deepEqual((told['wrong_key'] as unknown[]).slice(0, 2), ['AuthenticationError', 401]);
    assert.deepEqual((told['nowhere'] as unknown[]).slice(0, 2), ['NotFoundError', 404]);
  });

  test('streams the arguments of a tool in pieces, and takes its result', async () => {
    const id = await deployHandler(fixture.operator, 'tools', TOOL_CALLING_HANDLER, {
      workers: { min: 1, max: 1 },
    });
    const told = await runPythonForJson(python, CALLS_A_TOOL, {
      ...env,
      BASE: `${fixture.server.url}/v2/${id}/openai/v1`,
    });
    assert.deepEqual([told['finished'], told['call']], ['tool_calls', ['call_1', 'function', 'shout']]);
    const pieces = told['pieces'] as string[];
    assert.ok(pieces.length > 2, 'the arguments came in pieces');
    assert.deepEqual(JSON.parse(pieces.join('')), { text: 'Grüße an alle 🎉' });
    assert.equal(told['helper'], pieces.join(''));
    assert.equal((told['words'] as string[]).join(''), 'GRÜSSE AN ALLE 🎉');
  });

  test('cancels the job by closing its stream', async () => {
    await runPythonForJson(python, LEAVES, env);
    await waitFor('the job is cancelled', async () => {
      const { body } = await fixture.server
        .client()
        .call<{ requests: { status: string }[] }>('GET', `/v2/${endpointId}/requests?limit=1`);
      return body.requests[0]?.status === 'CANCELLED';
    });
  });

  test('is installed and served as its page says', async () => {
    const { url, key } = fixture.server;
    const { stdout } = await promisify(execFile)(
      'bash',
      ['--norc', '-ec', documentationCode('openai.md', 'sh', 0, { url, key })],
      {
        env: {
          PATH: `${dirname(python.path)}:${resolve('node_modules/.bin')}:${process.env['PATH']}`,
          HOME: process.env['HOME'],
          BERTH_URL: url,
          BERTH_API_KEY: key,
        },
      },
    );
    assert.match(stdout, /already satisfied: openai[^]*\bopenai\b/);
  });

  test('runs what its page says', async () => {
    const program = startPython(
      python,
      documentationCode('openai.md', 'python', 0, {
        url: fixture.server.url,
        key: fixture.server.key,
        endpointId,
      }),
    );
    assert.equal(await program.ended, 0, program.output());
    assert.equal(program.output(), "['parrot']\nsay it after me\nword by word");
  });
});
