const OVERVIEW = '/v2/account/overview';

/** The addresses whose answers an event of `/v2/events` makes out of date. */
export function changedPaths(event: {
  type: string;
  endpointId?: string | undefined;
  podId?: string | undefined;
  volumeId?: string | undefined;
}): string[] {
  const { type, endpointId = '', podId = '', volumeId = '' } = event;
  switch (type.split('.')[0]) {
    case 'endpoint':
    case 'release':
      return [`/v2/serverless/${endpointId}`, '=/v2/serverless', OVERVIEW];
    case 'worker':
      return [`/v2/serverless/${endpointId}/workers`, `/v2/${endpointId}/health`, OVERVIEW];
    case 'job':
      return [`/v2/serverless/${endpointId}/jobs`, `/v2/${endpointId}`, OVERVIEW];
    case 'pod':
      return [`/v2/pods/${podId}`, '=/v2/pods', '=/v2/clusters', OVERVIEW];
    case 'volume':
      return [`/v2/network-volumes/${volumeId}`, '=/v2/network-volumes'];
    case 'quota':
      return ['/v2/account/limits'];
    default:
      return [];
  }
}
