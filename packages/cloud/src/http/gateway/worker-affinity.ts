/** Names the worker: on every response the one that answered, on a request the one that shall. */
export const WORKER_HEADER = 'X-Runpod-Worker-Id';

/**
 * Which worker a request asks for. `prefer` takes another where that one is not free;
 * `strict` does not; `strict-resume` besides has it started again where it was scaled down.
 */
export interface WorkerAffinity {
  kind: 'prefer' | 'strict' | 'strict-resume';
  workerId: string;
}

/** Reads `<id>`, `strict <id>` or `strict-resume <id>`. */
export function parseWorkerAffinity(header: string | string[] | undefined): WorkerAffinity | undefined {
  if (header === undefined) return undefined;
  const match = /^\s*(?:(strict|strict-resume)\s+)?(\S+)\s*$/i.exec(String(header));
  if (match === null) return undefined;
  return { kind: (match[1]?.toLowerCase() ?? 'prefer') as WorkerAffinity['kind'], workerId: match[2] ?? '' };
}

export function isStrictAffinity(affinity: WorkerAffinity | undefined): affinity is WorkerAffinity {
  return affinity !== undefined && affinity.kind !== 'prefer';
}
