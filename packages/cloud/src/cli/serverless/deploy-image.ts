import type { ApiClient } from '../api-client.ts';
import type { EndpointView } from './endpoint-client.ts';
import { endpointPath, listEndpoints, findEndpointIn } from './endpoint-client.ts';
import { fetchGpuChoice } from './gpu-choice.ts';
import type { DeploySettings } from './deploy-options.ts';
import { endpointUpdateBody, endpointCreateBody } from './deploy-options.ts';
import type { ReportProgress } from './image-upload.ts';

/** Updates the image of the endpoint of this name, or creates the endpoint. */
export async function deployImage(
  client: ApiClient,
  name: string,
  image: string,
  order: DeploySettings,
  say: ReportProgress,
): Promise<{ endpoint: EndpointView; created: boolean }> {
  const present = findEndpointIn(await listEndpoints(client), name);
  const gpu = order.gpu === undefined ? undefined : await fetchGpuChoice(client, order.gpu);
  if (present === undefined) {
    const endpoint = await client.post<EndpointView>(
      '/v2/serverless',
      endpointCreateBody(name, image, order, gpu),
    );
    say(`endpoint ${endpoint.name} (${endpoint.id}) created`);
    return { endpoint, created: true };
  }
  const endpoint = await client.patch<EndpointView>(
    endpointPath(present),
    endpointUpdateBody(present, image, order, gpu),
  );
  say(`endpoint ${endpoint.name} (${endpoint.id}) runs ${endpoint.image} from now on`);
  return { endpoint, created: false };
}
