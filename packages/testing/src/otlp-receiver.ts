import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** A span as a receiver reads it. */
export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  kind: number;
  /** Nanoseconds since 1970. */
  start: bigint;
  end: bigint;
  attributes: Record<string, string | number>;
  isError: boolean;
}

/** A receiver of OTLP over HTTP in JSON that refuses what is not of the shape that OTLP defines. */
export interface OtlpReceiver {
  url: string;
  spans: ReceivedSpan[];
  headers: IncomingHttpHeaders[];
  resources: Record<string, string | number>[];
  /** What was refused, and why. */
  problems: string[];
  /** Answers this status for so many requests. */
  refuse(status: number, times: number): void;
  close(): void;
}

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const refused: number[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const status = refused.shift();
      if (status !== undefined) return response.writeHead(status).end();
      try {
        assert.equal(request.method, 'POST');
        assert.equal(request.url, '/v1/traces');
        assert.equal(request.headers['content-type'], 'application/json');
        read(JSON.parse(body) as unknown, receiver);
        receiver.headers.push(request.headers);
        return response.writeHead(200, { 'content-type': 'application/json' }).end('{"partialSuccess":{}}');
      } catch (error) {
        receiver.problems.push(String(error));
        return response.writeHead(400).end();
      }
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const receiver: OtlpReceiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: [],
    headers: [],
    resources: [],
    problems: [],
    refuse: (status, times) => refused.push(...Array.from({ length: times }, () => status)),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
  return receiver;
}

/** ExportTraceServiceRequest of OTLP, in its JSON form: unknown fields are refused here. */
function read(body: unknown, receiver: OtlpReceiver): void {
  const { resourceSpans } = fields(body, ['resourceSpans']);
  for (const ofResource of list(resourceSpans)) {
    const { resource, scopeSpans } = fields(ofResource, ['resource', 'scopeSpans', 'schemaUrl']);
    receiver.resources.push(attributes(fields(resource, ['attributes'])['attributes']));
    for (const ofScope of list(scopeSpans)) {
      const { scope, spans } = fields(ofScope, ['scope', 'spans', 'schemaUrl']);
      assert.equal(typeof fields(scope, ['name', 'version', 'attributes'])['name'], 'string');
      receiver.spans.push(...list(spans).map(readSpan));
    }
  }
}

function readSpan(given: unknown): ReceivedSpan {
  const span = fields(given, [
    'traceId',
    'spanId',
    'parentSpanId',
    'traceState',
    'flags',
    'name',
    'kind',
    'startTimeUnixNano',
    'endTimeUnixNano',
    'attributes',
    'events',
    'links',
    'status',
  ]);
  const status = fields(span['status'] ?? {}, ['code', 'message']);
  assert.ok([undefined, 0, 1, 2].includes(status['code'] as number | undefined));
  const [start, end] = [nanoseconds(span['startTimeUnixNano']), nanoseconds(span['endTimeUnixNano'])];
  assert.ok(start <= end, 'a span begins before it ends');
  assert.ok(Number.isInteger(span['kind']) && Number(span['kind']) >= 0 && Number(span['kind']) <= 5);
  assert.ok(typeof span['name'] === 'string' && span['name'] !== '');
  return {
    traceId: matching(span['traceId'], /^(?!0{32})[\da-f]{32}$/),
    spanId: matching(span['spanId'], /^(?!0{16})[\da-f]{16}$/),
    parentSpanId:
      span['parentSpanId'] === undefined
        ? undefined
        : matching(span['parentSpanId'], /^(?!0{16})[\da-f]{16}$/),
    name: span['name'],
    kind: Number(span['kind']),
    start,
    end,
    attributes: attributes(span['attributes'] ?? []),
    isError: status['code'] === 2,
  };
}

function attributes(given: unknown): Record<string, string | number> {
  return Object.fromEntries(
    list(given).map((one) => {
      const { key, value } = fields(one, ['key', 'value']);
      const [kind = '', ...others] = Object.keys(value as object);
      assert.deepEqual(others, []);
      const found = (value as Record<string, unknown>)[kind];
      if (kind === 'intValue') return [key, Number(matching(found, /^-?\d+$/))];
      assert.equal(typeof found, kind === 'stringValue' ? 'string' : 'number', `${String(key)}: ${kind}`);
      return [key, found];
    }),
  ) as Record<string, string | number>;
}

function fields(given: unknown, known: readonly string[]): Record<string, unknown> {
  assert.ok(typeof given === 'object' && given !== null && !Array.isArray(given));
  for (const name of Object.keys(given)) assert.ok(known.includes(name), `the field ${name} is unknown`);
  return given as Record<string, unknown>;
}

function list(given: unknown): unknown[] {
  assert.ok(Array.isArray(given));
  return given;
}

function matching(given: unknown, pattern: RegExp): string {
  assert.ok(typeof given === 'string' && pattern.test(given), `${String(given)} does not match ${pattern}`);
  return given;
}

function nanoseconds(given: unknown): bigint {
  return BigInt(matching(given, /^[1-9]\d{18}$/));
}
