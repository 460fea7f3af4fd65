/**
 * What the history of a worker is stored under. It begins with the endpoint's id, so that who may read the
 * endpoint can read only the workers of that endpoint, also after they have ended.
 */
export function workerHistoryId(endpointId: string, workerId: string): string {
  return `${endpointId}/${workerId}`;
}
