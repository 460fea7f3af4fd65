import { BerthError } from '../../support/errors.ts';

/** A call of the OpenAI API, as a job. */
export interface OpenAiCall {
  /** The request body of the job. */
  text: string;
  /** The client wants a stream. */
  stream: boolean;
}

/** The path for the handler: the part after `/openai`. */
export function openAiRoute(rest: readonly string[]): string {
  const parts = rest.filter((part) => part !== '');
  if (parts.length === 0)
    throw new BerthError('no-route', 'no such address; the routes are below /openai/v1');
  return `/${parts.join('/')}`;
}

/** A call without a body. */
export function getCall(route: string): OpenAiCall {
  return { text: `{"input":{"openai_route":${JSON.stringify(route)}}}`, stream: false };
}

/** A call with a body, which is passed on as text, unchanged. */
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
