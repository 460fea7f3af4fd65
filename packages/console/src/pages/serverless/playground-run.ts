import { api, send } from '../../api/client.ts';
import { readEvents } from '../../api/sse.ts';
import type { Mode } from './snippets.ts';

export interface RunUpdate {
  status?: string;
  jobId?: string;
  /** What arrived as a stream so far. */
  text?: string;
  answer?: unknown;
  elapsedMs: number;
}

interface JobAnswer {
  id: string;
  status: string;
  output?: unknown;
}

const POLL_MS = 500;
const ENDED = new Set(['COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT']);

/** Sends the request, and says at each step what is known. */
export async function playgroundRun({
  endpointId,
  mode,
  body,
  signal,
  onUpdate,
}: {
  endpointId: string;
  mode: Mode;
  body: string;
  signal: AbortSignal;
  onUpdate: (update: RunUpdate) => void;
}): Promise<void> {
  const began = performance.now();
  const report = (update: Omit<RunUpdate, 'elapsedMs'>): void =>
    onUpdate({ ...update, elapsedMs: performance.now() - began });
  const base = `/v2/${endpointId}`;
  if (mode === 'chat') return chat(`${base}/openai/v1/chat/completions`, body, signal, report);
  const job = await api<JobAnswer>(`${base}/${mode === 'runsync' ? 'runsync' : 'run'}`, {
    ...json(body),
    signal,
  });
  report({ status: job.status, jobId: job.id, answer: job });
  let text = '';
  if (mode === 'stream') {
    const response = await send(`${base}/stream/${job.id}`, {
      headers: { accept: 'text/event-stream' },
      signal,
    });
    for await (const data of readEvents(response)) {
      const { output } = JSON.parse(data) as { output?: unknown };
      text += typeof output === 'string' ? output : `${JSON.stringify(output)}\n`;
      report({ status: 'IN_PROGRESS', jobId: job.id, text });
    }
  }
  let last = job;
  while (!ENDED.has(last.status)) {
    await new Promise((resolve) => setTimeout(resolve, mode === 'stream' ? 50 : POLL_MS));
    last = await api<JobAnswer>(`${base}/status/${job.id}`, { signal });
    report({ status: last.status, jobId: job.id, text, answer: last });
  }
}

async function chat(
  path: string,
  body: string,
  signal: AbortSignal,
  report: (update: Omit<RunUpdate, 'elapsedMs'>) => void,
): Promise<void> {
  const response = await send(path, { ...json(body), signal });
  if (!(response.headers.get('content-type') ?? '').includes('event-stream'))
    return report({ status: 'COMPLETED', answer: await response.json() });
  let text = '';
  for await (const data of readEvents(response)) {
    if (data === '[DONE]') break;
    const { choices } = JSON.parse(data) as { choices?: { delta?: { content?: string } }[] };
    text += choices?.[0]?.delta?.content ?? '';
    report({ status: 'IN_PROGRESS', text });
  }
  report({ status: 'COMPLETED', text });
}

/** As it was typed: large numbers keep their digits. */
function json(body: string): { method: 'POST'; raw: string; headers: Record<string, string> } {
  return { method: 'POST', raw: body, headers: { 'content-type': 'application/json' } };
}
