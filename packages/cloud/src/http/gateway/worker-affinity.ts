/** Names a worker: on a response the one that answered, on a request the one that should. */
export const WORKER_HEADER = 'X-Runpod-Worker-Id';

/**
 * The worker that a request asks for. `prefer` accepts another if that one is busy; `strict` does
 * not; `strict-resume` does not either, and starts the worker again if it was scaled down.
 */
export interface WorkerAffinity {
  kind: 'prefer' | 'strict' | 'strict-resume';
  workerId: string;
}

/** Parses `<id>`, `strict <id>` or `strict-resume <id>`. */
export function parseWorkerAffinity(header: string | string[] | undefined): WorkerAffinity | undefined {
  if (header === undefined) return undefined;
  const match = /^\s*(?:(strict|strict-resume)\s+)?(\S+)\s*$/i.exec(String(header));
  if (match === null) return undefined;
  return { kind: (match[1]?.toLowerCase() ?? 'prefer') as WorkerAffinity['kind'], workerId: match[2] ?? '' };
}

export function isStrictAffinity(affinity: WorkerAffinity | undefined): affinity is WorkerAffinity {
  return affinity !== undefined && affinity.kind !== 'prefer';
}
