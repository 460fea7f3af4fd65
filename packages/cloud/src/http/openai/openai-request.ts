import { BerthError } from '../../support/errors.ts';

/** A call of the OpenAI interface, as the job that it becomes. */
export interface OpenAiCall {
  /** The request body of the job. */
  text: string;
  /** The caller wants the answer piece by piece. */
  stream: boolean;
}

/** The path that the handler gets: what follows `/openai`. */
export function openAiRoute(rest: readonly string[]): string {
  const parts = rest.filter((part) => part !== '');
  if (parts.length === 0)
    throw new BerthError('no-route', 'no such address; the routes are below /openai/v1');
  return `/${parts.join('/')}`;
}

/** A call without a body; the handler knows it by that. */
export function getCall(route: string): OpenAiCall {
  return { text: `{"input":{"openai_route":${JSON.stringify(route)}}}`, stream: false };
}

/** A call with a body, which travels on as the text that it is. */
export function postCall(route: string, body: string): OpenAiCall {
  const { stream } = parse(body);
  return {
    text: `{"input":{"openai_route":${JSON.stringify(route)},"openai_input":${body}}}`,
    stream: stream === true,
  };
}

function parse(body: string): { stream?: unknown } {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw new BerthError(
      'malformed',
      body === '' ? 'the body is empty: send a JSON object' : 'the body is not valid JSON',
    );
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new BerthError('malformed', 'the body must be a JSON object');
  return value;
}
