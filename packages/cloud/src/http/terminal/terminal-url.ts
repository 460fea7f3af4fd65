/** The pod or worker of a terminal. */
export type TerminalUrl = (
  | { kind: 'pod'; podId: string }
  | { kind: 'worker'; endpointId: string; workerId: string }
) & { query: URLSearchParams };

const POD = /^\/v2\/pods\/([^/]+)\/terminal$/;
const WORKER = /^\/v2\/serverless\/([^/]+)\/workers\/([^/]+)\/terminal$/;

/** Parses the URL of a terminal; undefined if it is not one. */
export function parseTerminalUrl(url: string): TerminalUrl | undefined {
  if (!url.startsWith('/v2/')) return undefined;
  const mark = url.indexOf('?');
  const path = mark === -1 ? url : url.slice(0, mark);
  const query = new URLSearchParams(mark === -1 ? '' : url.slice(mark + 1));
  const pod = POD.exec(path);
  if (pod !== null) return { kind: 'pod', podId: pod[1] as string, query };
  const worker = WORKER.exec(path);
  return worker === null
    ? undefined
    : { kind: 'worker', endpointId: worker[1] as string, workerId: worker[2] as string, query };
}
