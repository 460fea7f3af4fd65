export type Mode = 'runsync' | 'run' | 'stream' | 'chat';
export type Language = 'curl' | 'python' | 'typescript';

export interface Call {
  origin: string;
  endpointId: string;
  mode: Mode;
  /** The body of the request, as JSON text. */
  body: string;
}

/** A larger body is read from a file: nobody reads it in a program. */
const MAX_INLINE = 10_000;
const FILE = 'request.json';

/** The call of the playground as a program. The key is read from the environment: it belongs in no text. */
export function snippet(language: Language, call: Call): string {
  const program = { curl, python, typescript }[language];
  return program(call).join('\n');
}

function curl({ origin, endpointId, mode, body }: Call): string[] {
  const data = isInline(body) ? `'${compact(body).replaceAll("'", "'\\''")}'` : `@${FILE}`;
  return [
    `curl -s ${urlOf({ origin, endpointId, mode })} \\`,
    '  -H "Authorization: Bearer $BERTH_API_KEY" \\',
    '  -H "Content-Type: application/json" \\',
    `  -d ${data}`,
    ...(mode === 'stream'
      ? [
          '',
          `curl -N ${origin}/v2/${endpointId}/stream/JOB_ID \\`,
          '  -H "Authorization: Bearer $BERTH_API_KEY" -H "Accept: text/event-stream"',
        ]
      : []),
  ];
}

const PYTHON_CALLS: Record<Exclude<Mode, 'chat'>, string[]> = {
  runsync: ['print(endpoint.run_sync(request))'],
  run: ['job = endpoint.run(request)', 'print(job.output(timeout=60))'],
  stream: ['for chunk in endpoint.run(request).stream():', '    print(chunk)'],
};

function python({ origin, endpointId, mode, body }: Call): string[] {
  // A JSON string is a Python string too.
  const request = isInline(body)
    ? `json.loads(${JSON.stringify(compact(body))})`
    : `json.load(open("${FILE}"))`;
  if (mode === 'chat')
    return [
      'import json, os',
      'from openai import OpenAI',
      '',
      'client = OpenAI(',
      `    base_url="${origin}/v2/${endpointId}/openai/v1",`,
      '    api_key=os.environ["BERTH_API_KEY"],',
      ')',
      `request = ${request}`,
      'print(client.chat.completions.create(**request))',
    ];
  return [
    'import json, os, runpod',
    '',
    'runpod.api_key = os.environ["BERTH_API_KEY"]',
    `runpod.endpoint_url_base = "${origin}/v2"`,
    '',
    `endpoint = runpod.Endpoint("${endpointId}")`,
    `request = ${request}`,
    ...PYTHON_CALLS[mode],
  ];
}

function typescript({ origin, endpointId, mode, body }: Call): string[] {
  const [read, request] = isInline(body)
    ? [[], compact(body)]
    : [["import { readFileSync } from 'node:fs';"], `JSON.parse(readFileSync('${FILE}', 'utf8'))`];
  if (mode === 'chat')
    return [
      ...read,
      "import OpenAI from 'openai';",
      '',
      'const client = new OpenAI({',
      `  baseURL: '${origin}/v2/${endpointId}/openai/v1',`,
      '  apiKey: process.env.BERTH_API_KEY,',
      '});',
      `console.log(await client.chat.completions.create(${request}));`,
    ];
  return [
    ...read,
    'const headers = {',
    '  Authorization: `Bearer ${process.env.BERTH_API_KEY}`,',
    "  'Content-Type': 'application/json',",
    '};',
    `const response = await fetch('${urlOf({ origin, endpointId, mode })}', {`,
    "  method: 'POST',",
    '  headers,',
    `  body: JSON.stringify(${request}),`,
    '});',
    ...(mode === 'stream'
      ? [
          'const { id } = await response.json();',
          `const stream = await fetch(\`${origin}/v2/${endpointId}/stream/\${id}\`, {`,
          "  headers: { ...headers, Accept: 'text/event-stream' },",
          '});',
          'for await (const chunk of stream.body.pipeThrough(new TextDecoderStream())) console.log(chunk);',
        ]
      : ['console.log(await response.json());']),
  ];
}

function urlOf({ origin, endpointId, mode }: Pick<Call, 'origin' | 'endpointId' | 'mode'>): string {
  const path = mode === 'chat' ? 'openai/v1/chat/completions' : mode === 'stream' ? 'run' : mode;
  return `${origin}/v2/${endpointId}/${path}`;
}

function isInline(body: string): boolean {
  return body.length <= MAX_INLINE;
}

function compact(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body));
  } catch {
    return body;
  }
}
