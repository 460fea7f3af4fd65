import type { IncomingHttpHeaders } from 'node:http';

/**
 * Whether `/stream` answers `{status, stream: [...]}` instead of the array that the contract
 * gives. The official SDKs read only the former. They are known by their name, or by naming
 * a content type on a GET, which all of them do and the contract does only with a body;
 * anyone else may ask for it.
 */
export function wantsEnvelope(method: string, headers: IncomingHttpHeaders, query: URLSearchParams): boolean {
  const requested = query.get('envelope');
  if (requested !== null) return requested !== 'false' && requested !== '0';
  if (headers['user-agent']?.startsWith('RunPod-') === true) return true;
  return method === 'GET' && (headers['content-type'] ?? '').toLowerCase().startsWith('application/json');
}
