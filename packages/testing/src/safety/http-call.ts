import { Agent, request } from 'node:http';

export interface HttpReply {
  status: number;
  text: string;
  /** The body as JSON; undefined where it is none. */
  body: unknown;
}

export interface HttpCall {
  method: string;
  url: string;
  /** As the Authorization header has it. */
  authorization: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

const agent = new Agent({ keepAlive: true, maxSockets: Infinity });

/** One HTTP call. Undefined where no whole answer came: then nobody knows what became of it. */
export function callHttp({
  method,
  url,
  authorization,
  body,
  headers = {},
  signal,
}: HttpCall): Promise<HttpReply | undefined> {
  return new Promise((resolve) => {
    const nothing = (): void => resolve(undefined);
    const text = body === undefined ? undefined : JSON.stringify(body);
    const sent = request(
      url,
      {
        method,
        agent,
        ...(signal !== undefined && { signal }),
        headers: {
          authorization,
          ...(text !== undefined && {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(text),
          }),
          ...headers,
        },
      },
      (response) => {
        const pieces: Buffer[] = [];
        response.on('data', (piece: Buffer) => pieces.push(piece));
        response.on('error', nothing);
        response.on('close', () => {
          if (!response.complete) return nothing();
          const whole = Buffer.concat(pieces).toString();
          resolve({ status: response.statusCode ?? 0, text: whole, body: parsed(whole) });
        });
      },
    );
    sent.on('error', nothing);
    sent.end(text);
  });
}

function parsed(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
