/**
 * A worker that speaks the OpenAI API as the common worker images do: the route and the body come in the
 * input, and a stream is events in text. Where the request offers tools and the last message is the user's,
 * it calls the first tool with that message; else it repeats the last message.
 */
export const TOOL_CALLING_HANDLER = `
interface Message { role: string; content: string | { text?: string }[] }
interface Body { stream?: boolean; messages: Message[]; tools?: { function: { name: string } }[] }
const base = { id: 'chatcmpl-1', created: 1, model: 'parrot' };
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
const textOf = ({ content }: Message) =>
  typeof content === 'string' ? content : content.map(({ text }) => text ?? '').join('');

export default async function* ({ input: { openai_input: body } }: { input: { openai_input: Body } }) {
  const last = body.messages.at(-1) as Message;
  const tool = last.role === 'user' ? body.tools?.[0]?.function.name : undefined;
  if (body.stream !== true) {
    const call = { name: tool, arguments: JSON.stringify({ text: textOf(last) }) };
    const message = tool === undefined
      ? { role: 'assistant', content: textOf(last) }
      : { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: call }] };
    const finish_reason = tool === undefined ? 'stop' : 'tool_calls';
    return yield { ...base, object: 'chat.completion', choices: [{ index: 0, finish_reason, message }], usage };
  }
  const chunk = (delta: object, finish_reason: string | null = null) => {
    const choices = [{ index: 0, delta, finish_reason }];
    return 'data: ' + JSON.stringify({ ...base, object: 'chat.completion.chunk', choices }) + '\\n\\n';
  };
  yield chunk({ role: 'assistant', content: '' });
  if (tool === undefined) for (const word of textOf(last).split(/(?<= )/)) yield chunk({ content: word });
  else {
    const call = { name: tool, arguments: '' };
    yield chunk({ tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: call }] });
    // The arguments come in pieces, as models write them.
    for (const piece of JSON.stringify({ text: textOf(last) }).match(/.{1,4}/gsu) ?? [])
      yield chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] });
  }
  yield chunk({}, tool === undefined ? 'stop' : 'tool_calls');
  yield 'data: [DONE]\\n\\n';
}
`;
