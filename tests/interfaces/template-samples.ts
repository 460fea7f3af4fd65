/** Everything that a template can say, in one form; the interfaces below write it in theirs. */
export interface Template {
  name: string;
  image: string;
  entrypoint: string[];
  cmd: string[];
  disk: number;
  env: Record<string, string>;
  ports: string[];
  registry: string | null;
  volume: { size: number; path: string };
  public: boolean;
  serverless: boolean;
  category: string;
  readme: string;
  startSsh: boolean;
  startJupyter: boolean;
  cudaVersions: string[];
}

export const template = (name: string, registry: string): Template => ({
  name,
  image: 'registry.test/team/image:v1@x',
  entrypoint: ['sh', '-c'],
  cmd: ['it\'s $HOME; "here"', '', 'ünï ☃'],
  disk: 33,
  env: { A: '1', EMPTY: '', constructor: 'c', REF: '{{ RUNPOD_SECRET_token }}', ünï: '☃\n' },
  ports: ['8000/http', '22/tcp', '70000/tcp'],
  registry,
  volume: { size: 44, path: '/data' },
  public: true,
  serverless: false,
  category: 'AMD',
  readme: '# Read me\n',
  startSsh: false,
  startJupyter: false,
  cudaVersions: ['12.8', '11.8'],
});
const args = ({ entrypoint, cmd }: Template): string => JSON.stringify({ entrypoint, cmd });
const pairs = (env: Record<string, string>): { key: string; value: string }[] =>
  Object.entries(env).map(([key, value]) => ({ key, value }));

export const v1Template = (made: Template) => ({
  name: made.name,
  imageName: made.image,
  dockerEntrypoint: made.entrypoint,
  dockerStartCmd: made.cmd,
  containerDiskInGb: made.disk,
  env: made.env,
  ports: made.ports,
  containerRegistryAuthId: made.registry,
  volumeInGb: made.volume.size,
  volumeMountPath: made.volume.path,
  isPublic: made.public,
  isServerless: made.serverless,
  category: made.category,
  readme: made.readme,
});
export const v2Template = (made: Template) => ({
  name: made.name,
  image: made.image,
  entrypoint: made.entrypoint,
  cmd: made.cmd,
  args: args(made),
  disk: made.disk,
  env: made.env,
  ports: made.ports,
  registry: made.registry,
  mounts: { persistent: made.volume },
  public: made.public,
  serverless: made.serverless,
  category: made.category,
  startSsh: made.startSsh,
  startJupyter: made.startJupyter,
  allowedCudaVersions: made.cudaVersions,
});
export const graphqlTemplate = (made: Template) => ({
  name: made.name,
  imageName: made.image,
  dockerArgs: args(made),
  containerArgs: args(made),
  containerDiskInGb: made.disk,
  env: pairs(made.env),
  ports: made.ports.join(','),
  containerRegistryAuthId: made.registry,
  volumeInGb: made.volume.size,
  volumeMountPath: made.volume.path,
  isPublic: made.public,
  isServerless: made.serverless,
  category: made.category,
  readme: made.readme,
  startSsh: made.startSsh,
  startJupyter: made.startJupyter,
});
/** What GraphQL alone knows of a template. */
export const GRAPHQL_ONLY = {
  portsConfig: [{ port: '8000', name: 'web' }],
  advancedStart: true,
  startScript: 'echo hello',
  config: { any: ['thing', null, 1] },
};
export const GRAPHQL_TEMPLATE =
  'id name imageName dockerArgs containerArgs containerDiskInGb env { key value } ports ' +
  'containerRegistryAuthId volumeInGb volumeMountPath isPublic isServerless category readme startSsh ' +
  'startJupyter portsConfig { port name } advancedStart startScript config';
