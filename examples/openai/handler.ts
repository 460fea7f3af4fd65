import { setTimeout as pause } from 'node:timers/promises';

/** A call of the OpenAI API arrives as its route and, where it has one, its body. */
interface Job {
  id: string;
  input: { openai_route: string; openai_input?: Completion };
}

interface Completion {
  model: string;
  messages: { role: string; content: string }[];
  stream?: boolean;
}

const MODEL = 'parrot';
const PAUSE_MS = 50;

/** The yielded values are the answer; while streaming, they are the text of the events. */
export default async function* parrot({
  id,
  input: { openai_route: route, openai_input: body },
}: Job): AsyncGenerator<unknown, void> {
  const created = Math.floor(Date.now() / 1000);
  if (route === '/v1/models') {
    yield { object: 'list', data: [{ id: MODEL, object: 'model', created, owned_by: 'berth' }] };
    return;
  }
  if (route !== '/v1/chat/completions' || body === undefined) throw new Error(`${route} is not spoken here`);
  const words = (body.messages.at(-1)?.content ?? '').split(/(?<= )/);
  if (body.stream !== true) {
    const message = { role: 'assistant', content: words.join('') };
    const usage = {
      prompt_tokens: words.length,
      completion_tokens: words.length,
      total_tokens: 2 * words.length,
    };
    yield {
      id,
      object: 'chat.completion',
      created,
      model: MODEL,
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage,
    };
    return;
  }
  const chunk = (delta: object, finish: string | null) => {
    const choices = [{ index: 0, delta, finish_reason: finish }];
    const body = { id, object: 'chat.completion.chunk', created, model: MODEL, choices };
    return `data: ${JSON.stringify(body)}\n\n`;
  };
  for (const word of words) {
    yield chunk({ role: 'assistant', content: word }, null);
    await pause(PAUSE_MS);
  }
  yield chunk({}, 'stop');
  yield 'data: [DONE]\n\n';
}
