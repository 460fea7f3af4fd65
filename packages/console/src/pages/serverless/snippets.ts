export type Mode = 'runsync' | 'run' | 'stream' | 'chat';
export type Language = 'curl' | 'python' | 'typescript';

export interface Call {
  origin: string;
  endpointId: string;
  mode: Mode;
  /** The body of the request, as JSON text. */
  body: string;
}

/** The call of the playground as a program. The key is read from the environment: it belongs in no text. */
export function snippet(language: Language, { origin, endpointId, mode, body }: Call): string {
  const path = mode === 'chat' ? 'openai/v1/chat/completions' : mode === 'stream' ? 'run' : mode;
  const url = `${origin}/v2/${endpointId}/${path}`;
  const json = compact(body);
  switch (language) {
    case 'curl': {
      const call = `curl -s ${url} \\\n  -H "Authorization: Bearer $BERTH_API_KEY" \\\n  -H "Content-Type: application/json" \\\n  -d '${json.replaceAll("'", "'\\''")}'`;
      return mode === 'stream'
        ? `${call}\n\ncurl -N ${origin}/v2/${endpointId}/stream/JOB_ID \\\n  -H "Authorization: Bearer $BERTH_API_KEY" -H "Accept: text/event-stream"`
        : call;
    }
    case 'python':
      return mode === 'chat'
        ? pythonChat(origin, endpointId, json)
        : pythonRun(origin, endpointId, mode, json);
    case 'typescript':
      return mode === 'chat' ? typescriptChat(origin, endpointId, json) : typescriptRun(url, mode, json);
  }
}

function pythonRun(origin: string, endpointId: string, mode: Mode, json: string): string {
  const call =
    mode === 'runsync'
      ? 'print(endpoint.run_sync(request))'
      : mode === 'run'
        ? 'job = endpoint.run(request)\nprint(job.output(timeout=60))'
        : 'for chunk in endpoint.run(request).stream():\n    print(chunk)';
  return `import json, os, runpod\n\nrunpod.api_key = os.environ["BERTH_API_KEY"]\nrunpod.endpoint_url_base = "${origin}/v2"\n\nendpoint = runpod.Endpoint("${endpointId}")\nrequest = json.loads(${pythonString(json)})\n${call}`;
}

function pythonChat(origin: string, endpointId: string, json: string): string {
  return `import json, os\nfrom openai import OpenAI\n\nclient = OpenAI(base_url="${origin}/v2/${endpointId}/openai/v1", api_key=os.environ["BERTH_API_KEY"])\nrequest = json.loads(${pythonString(json)})\nprint(client.chat.completions.create(**request))`;
}

function typescriptRun(url: string, mode: Mode, json: string): string {
  const start = `const headers = {\n  Authorization: \`Bearer \${process.env.BERTH_API_KEY}\`,\n  'Content-Type': 'application/json',\n};\nconst response = await fetch('${url}', {\n  method: 'POST',\n  headers,\n  body: JSON.stringify(${json}),\n});\n`;
  if (mode !== 'stream') return `${start}console.log(await response.json());`;
  return `${start}const { id } = await response.json();\nconst stream = await fetch(\`${url.replace(/\/run$/, '/stream/')}\${id}\`, {\n  headers: { ...headers, Accept: 'text/event-stream' },\n});\nfor await (const chunk of stream.body.pipeThrough(new TextDecoderStream())) console.log(chunk);`;
}

function typescriptChat(origin: string, endpointId: string, json: string): string {
  return `import OpenAI from 'openai';\n\nconst client = new OpenAI({\n  baseURL: '${origin}/v2/${endpointId}/openai/v1',\n  apiKey: process.env.BERTH_API_KEY,\n});\nconsole.log(await client.chat.completions.create(${json}));`;
}

/** A JSON string is a Python string too, but for characters that JSON leaves as they are. */
function pythonString(text: string): string {
  return JSON.stringify(text);
}

function compact(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body));
  } catch {
    return body;
  }
}
