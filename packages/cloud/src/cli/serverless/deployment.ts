import type { Client } from '../client.ts';
import type { EndpointView } from './endpoints.ts';
import { endpointPath, listEndpoints, pick } from './endpoints.ts';
import { chooseGpus } from './gpus.ts';
import type { Order } from './order.ts';
import { change, creation } from './order.ts';
import type { Say } from './upload.ts';

/** Gives the endpoint of this name a new image, or makes it where there is none. */
export async function deployImage(
  client: Client,
  name: string,
  image: string,
  order: Order,
  say: Say,
): Promise<{ endpoint: EndpointView; created: boolean }> {
  const present = pick(await listEndpoints(client), name);
  const gpu = order.gpu === undefined ? undefined : await chooseGpus(client, order.gpu);
  if (present === undefined) {
    const endpoint = await client.post<EndpointView>('/v2/serverless', creation(name, image, order, gpu));
    say(`endpoint ${endpoint.name} (${endpoint.id}) is made`);
    return { endpoint, created: true };
  }
  const endpoint = await client.patch<EndpointView>(
    endpointPath(present),
    change(present, image, order, gpu),
  );
  say(`endpoint ${endpoint.name} (${endpoint.id}) runs ${endpoint.image} from now on`);
  return { endpoint, created: false };
}
