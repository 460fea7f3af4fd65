import { isDeepStrictEqual } from 'node:util';
import type { Container, Endpoint, Template } from '../records.ts';

/**
 * The container that an account's endpoint gets from a template. Credentials of other accounts stay with
 * them.
 */
export function containerFromTemplate(
  { image, args, containerDisk, ports, env, registryId, accountId }: Template,
  forAccount: string,
): Container {
  return { image, args, containerDisk, ports, env, registryId: accountId === forAccount ? registryId : null };
}

/**
 * What becomes of a container when the template behind it changes: it takes each thing that
 * the template changed, unless it holds that thing otherwise than the template did. That is
 * then its own. Environment variables count one by one.
 */
export function mergeTemplateChange(held: Container, before: Container, after: Container): Container {
  const pick = <K extends keyof Container>(field: K): Container[K] =>
    isDeepStrictEqual(held[field], before[field]) ? after[field] : held[field];
  return {
    image: pick('image'),
    args: pick('args'),
    containerDisk: pick('containerDisk'),
    ports: pick('ports'),
    registryId: pick('registryId'),
    env: mergeEnvChange(held.env, before.env, after.env),
  };
}

function mergeEnvChange(
  held: Record<string, string>,
  before: Record<string, string>,
  after: Record<string, string>,
): Record<string, string> {
  const names = new Set([...Object.keys(held), ...Object.keys(after)]);
  const followed: Record<string, string> = {};
  for (const name of names) {
    const [own, old, changed] = [held, before, after].map((env) =>
      Object.hasOwn(env, name) ? env[name] : undefined,
    );
    const value = own === old ? changed : own;
    if (value !== undefined) followed[name] = value;
  }
  return followed;
}

/** The template that an endpoint would have been made from, where it follows none. */
export function impliedTemplate(endpoint: Endpoint): Template {
  const {
    image,
    args,
    containerDisk,
    ports,
    env,
    registryId,
    accountId,
    name,
    allowedCudaVersions,
    createdAt,
    updatedAt,
  } = endpoint;
  return {
    id: endpoint.templateId ?? endpoint.id,
    accountId,
    name,
    image,
    args,
    containerDisk,
    volumeSize: 0,
    volumePath: '',
    ports,
    portLabels: [],
    env,
    registryId,
    category: endpoint.compute === 'CPU' ? 'CPU' : 'NVIDIA',
    public: false,
    serverless: true,
    readme: '',
    startSsh: false,
    startJupyter: false,
    startScript: '',
    advancedStart: false,
    allowedCudaVersions,
    config: null,
    createdAt,
    updatedAt,
  };
}
