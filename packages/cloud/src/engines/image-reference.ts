import { ruleError } from '../support/errors.ts';

/** The first part is a registry's host if it has a dot or a port, or is localhost. */
const HOST = /^(?:localhost|[^/]*[.:][^/]*)$/;
const NAME = /^[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*$/;
const TAG = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;
const DIGEST = /^[a-z0-9]+(?:[+._-][a-z0-9]+)*:[0-9a-fA-F]{32,}$/;

const DOCKER_HUB = 'docker.io';
/** Docker Hub's credentials use this address, for historical reasons. */
const DOCKER_HUB_LOGIN = 'https://index.docker.io/v1/';

export interface ImageReference {
  registry: string;
  /** The reference for the daemon, always with a tag or digest: a name alone would mean all tags. */
  full: string;
}

export interface RegistryLogin {
  username: string;
  password: string;
  serveraddress: string;
}

/** Why this is not a valid reference to run; undefined if it is. */
export function referenceProblem(image: string): string | undefined {
  if (image.startsWith('local/'))
    return (
      `the image ${JSON.stringify(image)} is a folder of this machine: the process engine runs ` +
      'those, and containers only with a runner image (setting runner.image)'
    );
  return parse(image) === undefined
    ? `${JSON.stringify(image.slice(0, 200))} is not a valid image name`
    : undefined;
}

export function parseReference(image: string): ImageReference {
  const reference = parse(image);
  if (reference === undefined) throw ruleError(referenceProblem(image) ?? '');
  return reference;
}

function parse(image: string): ImageReference | undefined {
  const [named = '', digest, ...more] = image.split('@');
  if (more.length > 0 || (digest !== undefined && !DIGEST.test(digest))) return undefined;
  const slash = named.indexOf('/');
  const first = slash === -1 ? '' : named.slice(0, slash);
  const host = HOST.test(first) ? first : undefined;
  const path = host === undefined ? named : named.slice(slash + 1);
  const colon = path.lastIndexOf(':');
  const tag = colon === -1 ? undefined : path.slice(colon + 1);
  const name = colon === -1 ? path : path.slice(0, colon);
  if (!name.split('/').every((part) => NAME.test(part)) || (tag !== undefined && !TAG.test(tag)))
    return undefined;
  return {
    registry: host === undefined || host === 'index.docker.io' ? DOCKER_HUB : host,
    full: tag === undefined && digest === undefined ? `${image}:latest` : image,
  };
}

/** The credentials for the registry of an image. */
export function registryLogin(
  image: string,
  { username, password }: { username: string; password: string },
): RegistryLogin {
  const { registry } = parseReference(image);
  return { username, password, serveraddress: registry === DOCKER_HUB ? DOCKER_HUB_LOGIN : registry };
}
