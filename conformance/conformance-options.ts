import { parseArgs } from 'node:util';
import type { ApiUrls, DeploymentOptions } from './deployment.ts';

export const USAGE = `Holds a deployment against the interface that clients expect.

  npm run conformance -- --url URL --key KEY [more]

  --url URL            its origin, with /v1, /v2 and /graphql below it; or the four addresses, separated by commas:
                       v1=URL,v2=URL,jobs=URL,graphql=URL
  --key KEY            an API key that may do everything
  --worker-token TOKEN opens the worker side of the suite's own endpoints, so that the suite can be their worker;
                       on Berth, the API key does
  --endpoint ID        an endpoint with workers of its own, to run a job on
  --pods               rents pods, too, which may cost money
  --image NAME         what endpoints and pods run (local/shell)
  --only WORD          only checks whose group or name has this word
  --against URL2 --key2 KEY2 [--worker-token2 TOKEN] [--endpoint2 ID]
                       a second deployment, shown beside the first
  --json               the outcome as JSON

Everything that is made has a name that begins with "conformance-", and is removed again.
It ends with 1 where a check failed.
`;

export interface ConformanceOptions {
  deployments: DeploymentOptions[];
  only: string | undefined;
  json: boolean;
}

/** Undefined for invalid arguments; the usage text lists the valid ones. */
export function parseOptions(words: readonly string[]): ConformanceOptions | undefined {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  let values;
  try {
    ({ values } = parseArgs({
      args: [...words],
      options: {
        url: text,
        key: text,
        'worker-token': text,
        endpoint: text,
        against: text,
        key2: text,
        'worker-token2': text,
        endpoint2: text,
        image: text,
        only: text,
        pods: flag,
        json: flag,
      },
    }));
  } catch {
    return undefined;
  }
  const { url, key, against, key2, pods, json, only, image = 'local/shell' } = values;
  if (url === undefined || key === undefined || (against === undefined) !== (key2 === undefined))
    return undefined;
  const first = {
    urls: apiUrls(url),
    key,
    workerToken: values['worker-token'],
    endpointId: values.endpoint,
    pods,
    image,
  };
  const second =
    against === undefined || key2 === undefined
      ? []
      : [
          {
            urls: apiUrls(against),
            key: key2,
            workerToken: values['worker-token2'],
            endpointId: values.endpoint2,
            pods,
            image,
          },
        ];
  return { deployments: [first, ...second], only, json };
}

export function apiUrls(url: string): ApiUrls {
  const bare = (text: string): string => text.replace(/\/+$/, '');
  if (!url.includes('='))
    return {
      v1: `${bare(url)}/v1`,
      v2: `${bare(url)}/v2`,
      jobs: `${bare(url)}/v2`,
      graphql: `${bare(url)}/graphql`,
    };
  const named = Object.fromEntries(
    url.split(',').map((part) => [part.slice(0, part.indexOf('=')), bare(part.slice(part.indexOf('=') + 1))]),
  );
  const { v1 = '', v2 = '', jobs = v2, graphql = '' } = named;
  return { v1, v2, jobs, graphql };
}
