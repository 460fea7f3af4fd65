import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import type { ApiResponse, ApiClient } from './api-client.ts';
import { waitFor } from './wait-for.ts';

/** A pod as REST v1 answers it. */
export interface V1Pod {
  id: string;
  name: string;
  desiredStatus: string;
  lastStatusChange: string;
  image: string;
  env: Record<string, string>;
  ports: string[];
  portMappings: Record<string, number> | null;
  publicIp: string | null;
  containerDiskInGb: number;
  volumeInGb: number;
  templateId: string | null;
  locked: boolean;
  gpu?: { id: string; count: number };
  [field: string]: unknown;
}

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

export const SMALL_CPU = { id: 'cpu3c', vcpuCount: 2 };
/** Runs until it is stopped. */
export const SLEEP_COMMAND = ['sh', '-c', 'echo up; exec sleep 1000'];

export function createPod(
  client: ApiClient,
  body: Record<string, unknown> = {},
): Promise<ApiResponse<PodView>> {
  return client.call<PodView>('POST', '/v2/pods', {
    name: 'pod',
    image: 'local/shell',
    cmd: SLEEP_COMMAND,
    ...(body['gpu'] === undefined && { cpu: SMALL_CPU }),
    ...body,
  });
}

export async function getPod(client: ApiClient, id: string): Promise<PodView> {
  const { status, body, text } = await client.call<PodView>('GET', `/v2/pods/${id}`);
  assert.equal(status, 200, text);
  return body;
}

/** The pod once it has this status. */
export function waitForPodStatus(client: ApiClient, id: string, status: string): Promise<PodView> {
  return waitFor(`pod ${id} is ${status}`, async () => {
    const found = await getPod(client, id);
    return found.status === status && found;
  });
}

/** A pod that runs. */
export async function createRunningPod(
  client: ApiClient,
  body: Record<string, unknown> = {},
): Promise<PodView> {
  const made = await createPod(client, body);
  assert.equal(made.status, 201, made.text);
  return waitForPodStatus(client, made.body.id, 'RUNNING');
}

export async function podAction(
  client: ApiClient,
  id: string,
  action: string,
): Promise<ApiResponse<PodView>> {
  return client.call<PodView>('POST', `/v2/pods/${id}/action`, { action });
}

export interface PodLogEvent {
  id: string;
  source: string;
  line: string;
}

/** What is in its log by now. */
export async function podLog(
  client: ApiClient,
  id: string,
  query = '',
  headers: Record<string, string> = {},
): Promise<PodLogEvent[]> {
  const { status, text } = await client.call(
    'GET',
    `/v2/pods/${id}/logs?follow=false${query}`,
    undefined,
    headers,
  );
  assert.equal(status, 200, text);
  return parseLogEvents(text);
}

export function parseLogEvents(text: string): PodLogEvent[] {
  return text
    .split('\n\n')
    .filter((frame) => frame.startsWith('id: '))
    .map((frame) => {
      const [first = '', second = ''] = frame.split('\n');
      const { source, line } = JSON.parse(second.slice('data: '.length)) as PodLogEvent;
      return { id: first.slice('id: '.length), source, line };
    });
}

/** What the container wrote, without the system lines. */
export async function containerLogLines(client: ApiClient, id: string): Promise<string[]> {
  return (await podLog(client, id, '&tail=5000'))
    .filter(({ source }) => source === 'container')
    .map(({ line }) => line);
}

/**
 * The processes on this machine that belong to a pod or a worker, the first of them first; the one that looks
 * after them is Berth's.
 */
export function processesOfInstance(podId: string): number[] {
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
  for (const pid of processesOfInstance(podId)) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
    }
  }
}
