import type { Template } from '../../domain/records.ts';

type OfficialTemplateFields = Pick<
  Template,
  | 'id'
  | 'name'
  | 'image'
  | 'args'
  | 'containerDisk'
  | 'volumeSize'
  | 'volumePath'
  | 'ports'
  | 'env'
  | 'category'
  | 'serverless'
  | 'readme'
  | 'startSsh'
  | 'startJupyter'
>;

/** Official templates belong to no account, so no account can change them. */
const NO_ACCOUNT = '';

/** The templates that are part of Berth. Every account can read and use them. */
export const officialTemplates: readonly Template[] = [
  official({
    id: 'berth-shell',
    name: 'Berth Shell',
    image: 'local/shell',
    // Waits forever. `sleep infinity` does not work on every Unix.
    args: 'tail -f /dev/null',
    containerDisk: 10,
    volumeSize: 0,
    volumePath: '/workspace',
    ports: [],
    env: {},
    category: 'CPU',
    serverless: false,
    readme: [
      '# Berth Shell',
      '',
      'The bare machine: a folder of its own and whatever programs the host has, with no container in between.',
      '',
      'As it stands, the pod waits. Give it a start command to have it do something, for example ' +
        '`python3 -m http.server 8000` with the port `8000/http`. The command is run as a list of ' +
        'arguments; write `sh -c "..."` where you want a shell.',
      '',
      'It runs as the user who runs Berth, so use it for code that you trust.',
      '',
    ].join('\n'),
    startSsh: false,
    startJupyter: false,
  }),
  official({
    // Public SDKs use this id for a CPU pod when the caller gives no template.
    id: 'runpod-ubuntu',
    name: 'Ubuntu 24.04',
    image: 'ubuntu:24.04',
    args: 'sleep infinity',
    containerDisk: 10,
    volumeSize: 0,
    volumePath: '/workspace',
    ports: ['22/tcp'],
    env: {},
    category: 'CPU',
    serverless: false,
    readme: [
      '# Ubuntu 24.04',
      '',
      'A plain Ubuntu, kept running so that you can log in and install what you need. Files below ' +
        '`/workspace` stay when a volume is mounted there; the rest goes when the pod stops.',
      '',
      'It needs a data center that runs containers.',
      '',
    ].join('\n'),
    startSsh: true,
    startJupyter: false,
  }),
  official({
    id: 'berth-echo',
    name: 'Berth Echo',
    image: 'local/echo',
    args: '',
    containerDisk: 5,
    volumeSize: 0,
    volumePath: '/workspace',
    ports: [],
    env: {},
    category: 'CPU',
    serverless: true,
    readme: [
      '# Berth Echo',
      '',
      'A serverless worker that answers each job with its own input. Make an endpoint of it to see a ' +
        'job go all the way round, then put your own handler in its place with `berth deploy`.',
      '',
    ].join('\n'),
    startSsh: false,
    startJupyter: false,
  }),
];

function official(fields: OfficialTemplateFields): Template {
  return {
    ...fields,
    accountId: NO_ACCOUNT,
    portLabels: [],
    registryId: null,
    public: true,
    startScript: '',
    advancedStart: false,
    allowedCudaVersions: [],
    config: null,
    createdAt: 0,
    updatedAt: 0,
  };
}
