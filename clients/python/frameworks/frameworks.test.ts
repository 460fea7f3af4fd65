import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { clientFixture } from '../../../packages/testing/src/client-fixture.ts';
import { deployHandler } from '../../../packages/testing/src/deploy-handler.ts';
import { startPython } from '../../../packages/testing/src/python-process.ts';
import { documentationCode } from '../../support/documentation-code.ts';
import { TOOL_CALLING_HANDLER } from '../../support/tool-calling-handler.ts';
import { installedPython, runPythonForJson } from '../python-programs.ts';

const python = installedPython('frameworks');

const LANGCHAIN = `
import json, os
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

@tool
def shout(text: str) -> str:
    """Says it louder."""
    return text.upper()

model = ChatOpenAI(model="parrot", base_url=os.environ["BASE"], api_key=os.environ["KEY"])
told = {"whole": model.invoke("say it after me").content}
told["pieces"] = [chunk.content for chunk in model.stream("word by word") if chunk.content]
question = HumanMessage("hello there")
asked = model.bind_tools([shout]).invoke([question])
told["call"] = [asked.tool_calls[0]["name"], asked.tool_calls[0]["args"]]
answer = ToolMessage(shout.invoke(asked.tool_calls[0]["args"]), tool_call_id=asked.tool_calls[0]["id"])
told["after"] = model.bind_tools([shout]).invoke([question, asked, answer]).content
streamed = None
for chunk in model.bind_tools([shout]).stream([question]):
    streamed = chunk if streamed is None else streamed + chunk
told["streamed_call"] = [streamed.tool_calls[0]["name"], streamed.tool_calls[0]["args"]]
print("SAID " + json.dumps(told))
`;

const LLAMA_INDEX = `
import json, os
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

model = OpenAILike(model="parrot", api_base=os.environ["BASE"], api_key=os.environ["KEY"], is_chat_model=True)
told = {"whole": model.chat([ChatMessage(role="user", content="say it after me")]).message.content}
told["pieces"] = [chunk.delta for chunk in model.stream_chat([ChatMessage(role="user", content="word by word")]) if chunk.delta]
print("SAID " + json.dumps(told))
`;

describe('frameworks on the OpenAI route', () => {
  const fixture = clientFixture();
  let endpointId: string;
  let env: Record<string, string>;
  before(async () => {
    endpointId = await deployHandler(fixture.client, 'parrot', TOOL_CALLING_HANDLER, {
      workers: { min: 1, max: 1 },
    });
    env = { BASE: `${fixture.server.url}/v2/${endpointId}/openai/v1`, KEY: fixture.server.key };
  });

  test('LangChain chats, streams and calls tools', async () => {
    const call = ['shout', { text: 'hello there' }];
    assert.deepEqual(await runPythonForJson(python, LANGCHAIN, env), {
      whole: 'say it after me',
      pieces: ['word ', 'by ', 'word'],
      call,
      after: 'HELLO THERE',
      streamed_call: call,
    });
  });

  test('LlamaIndex chats and streams', async () => {
    assert.deepEqual(await runPythonForJson(python, LLAMA_INDEX, env), {
      whole: 'say it after me',
      pieces: ['word ', 'by ', 'word'],
    });
  });

  for (const [number, framework] of ['LangChain', 'LlamaIndex'].entries())
    test(`${framework} runs what its page says`, async () => {
      const { url, key } = fixture.server;
      const code = documentationCode('frameworks.md', 'python', number, { url, key, endpointId });
      const program = startPython(python, code);
      assert.equal(await program.ended, 0, program.output());
      assert.equal(program.output(), 'say it after me\nword by word');
    });
});
