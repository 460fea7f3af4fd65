import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import type { Answer, Client } from './client.ts';
import { until } from './serverless.ts';

/** A pod as REST v2 shows it, as far as tests look at it. */
export interface PodView {
  id: string;
  name: string;
  status: string;
  actions: string[];
  image: string;
  args: string;
  disk: number;
  env: Record<string, string>;
  ports: string[];
  mounts: { persistent?: { size: number; path: string }; network?: { volumeId: string; path: string }[] };
  gpu?: { id: string; count: number };
  cpu?: { id: string; vcpuCount: number; memory: number };
  dataCenterId: string;
  template: string | null;
  cost: number;
  locked: boolean;
  runtime: {
    uptime: number;
    cpu: { util: number };
    memory: { util: number };
    gpus: unknown[];
    ports: { private: number; public: number | null; type: string; ip: string | null }[];
  } | null;
  startedAt: string | null;
  statusDetail: string | null;
}

export const CPU = { id: 'cpu3c', vcpuCount: 2 };
/** Stays until it is told to end. */
export const WAITS = ['sh', '-c', 'echo up; exec sleep 1000'];

export function createPod(client: Client, body: Record<string, unknown> = {}): Promise<Answer<PodView>> {
  return client.call<PodView>('POST', '/v2/pods', {
    name: 'pod',
    image: 'local/shell',
    cmd: WAITS,
    ...(body['gpu'] === undefined && { cpu: CPU }),
    ...body,
  });
}

export async function pod(client: Client, id: string): Promise<PodView> {
  const { status, body, text } = await client.call<PodView>('GET', `/v2/pods/${id}`);
  assert.equal(status, 200, text);
  return body;
}

/** The pod once it has this status. */
export function has(client: Client, id: string, status: string): Promise<PodView> {
  return until(`pod ${id} is ${status}`, async () => {
    const found = await pod(client, id);
    return found.status === status && found;
  });
}

/** A pod that runs. */
export async function runningPod(client: Client, body: Record<string, unknown> = {}): Promise<PodView> {
  const made = await createPod(client, body);
  assert.equal(made.status, 201, made.text);
  return has(client, made.body.id, 'RUNNING');
}

export async function act(client: Client, id: string, action: string): Promise<Answer<PodView>> {
  return client.call<PodView>('POST', `/v2/pods/${id}/action`, { action });
}

export interface LogEvent {
  id: string;
  source: string;
  line: string;
}

/** What is in its log by now. */
export async function logOf(
  client: Client,
  id: string,
  query = '',
  headers: Record<string, string> = {},
): Promise<LogEvent[]> {
  const { status, text } = await client.call(
    'GET',
    `/v2/pods/${id}/logs?follow=false${query}`,
    undefined,
    headers,
  );
  assert.equal(status, 200, text);
  return events(text);
}

export function events(text: string): LogEvent[] {
  return text
    .split('\n\n')
    .filter((frame) => frame.startsWith('id: '))
    .map((frame) => {
      const [first = '', second = ''] = frame.split('\n');
      const { source, line } = JSON.parse(second.slice('data: '.length)) as LogEvent;
      return { id: first.slice('id: '.length), source, line };
    });
}

/** What the container wrote, without what was said about it. */
export async function linesOf(client: Client, id: string): Promise<string[]> {
  return (await logOf(client, id, '&tail=5000'))
    .filter(({ source }) => source === 'container')
    .map(({ line }) => line);
}

/** The processes on this machine that belong to a pod or a worker, the first of them first; the one that looks after them is Berth's. */
export function processesOf(podId: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .sort((one, other) => one - other)
    .filter((pid) => {
      try {
        if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('supervisor.sh')) return false;
        return (
          readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`RUNPOD_POD_ID=${podId}`) &&
          !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
        );
      } catch {
        return false;
      }
    });
}

/** Sends a signal to all of them. One that has just ended by itself needs none. */
export function signalProcesses(podId: string, signal: NodeJS.Signals): void {
  for (const pid of processesOf(podId)) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
    }
  }
}
