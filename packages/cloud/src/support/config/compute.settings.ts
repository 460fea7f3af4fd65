import { isSubnet } from '../subnet.ts';
import { parseUserRange } from '../user-range.ts';
import { dataCenterListType } from './data-centers.setting.ts';
import { KUBERNETES_NAME } from './kubernetes-fields.setting.ts';
import { noPrices, pricesType } from './prices.setting.ts';
import { enumType, listOrWordType, optionalTextType, textType, urlType } from './setting-type.ts';
import { defineSetting } from './setting.ts';

/** What runs pods and workers, and what it costs. */
export const computeSettings = {
  gpus: defineSetting({
    type: listOrWordType(['auto', 'virtual', 'none'], 'GPU type ids'),
    default: 'auto',
    description:
      'The GPUs that can be rented. auto: the GPUs of this machine. virtual: on a machine without a ' +
      'GPU, two virtual GPUs of each of three common types, to try existing definitions: they are ' +
      'only names, without hardware. ' +
      'A list: virtual GPUs of these types, two of each unless a number precedes the type. none: ' +
      'the same as auto.',
    example: 'gpus: [NVIDIA GeForce RTX 4090, 8x NVIDIA A40]',
  }),
  dataCenters: defineSetting({
    type: dataCenterListType(),
    default: [{ id: 'LOCAL-1' }],
    description:
      'The data centers in which pods and workers run. Each is served by one engine; the default ' +
      'engine is process, which runs processes on this machine. ' +
      'If no data center uses Docker and a daemon answers, DOCKER-1 is added. ' +
      'On Docker, runtime is another OCI runtime (runsc for gVisor, kata), requireUserNamespaces ' +
      'starts nothing unless the daemon remaps users, ' +
      'capabilities grants Linux capabilities by name in addition to the default set, and pids is ' +
      'the number of processes in one container (8192); see docs/isolation.md. ' +
      'The engine kubernetes runs them in a cluster; docs/kubernetes.md has its fields.',
    example:
      'dataCenters:\n  - { id: LOCAL-1 }\n  - { id: EU-1, name: Rack 7, region: EUROPE, engine: ' +
      'docker }\n  - { id: EU-2, engine: docker, runtime: runsc, capabilities: [SYS_PTRACE] }\n  - ' +
      '{ id: K8S-1, engine: kubernetes, kubeconfig: /etc/berth/kubeconfig, namespace: berth }',
  }),
  kubeconfig: defineSetting({
    type: optionalTextType('the path of a kubeconfig', (value) => value),
    default: '',
    description:
      'The kubeconfig of a Kubernetes cluster, for data centers on Kubernetes without a kubeconfig ' +
      'of their own. If there is no data center on Kubernetes, K8S-1 is added.',
    example: 'kubeconfig: /etc/berth/kubeconfig',
  }),
  'kubernetes.namespace': defineSetting({
    type: textType('the name of a namespace', (value) => KUBERNETES_NAME.test(value)),
    default: 'berth',
    description:
      'The namespace of pods and workers, for data centers on Kubernetes without a namespace of ' +
      'their own.',
  }),
  'runner.image': defineSetting({
    type: optionalTextType('the name of an image', (value) => value),
    default: '',
    description:
      'The container image that runs folders of berth deploy on Docker and Kubernetes: the image of ' +
      'Berth itself, or one based on it. Without it, folders run on the process engine only.',
    example: 'runner.image: ghcr.io/berth-cloud/berth:0.2.0',
  }),
  'runner.pythonImage': defineSetting({
    type: optionalTextType('the name of an image', (value) => value),
    default: '',
    description:
      'The same for folders with a handler.py, a requirements.txt or a pyproject.toml. Default: runner.image.',
    example: 'runner.pythonImage: ghcr.io/berth-cloud/runner-python:0.2.0',
  }),
  'process.isolation': defineSetting({
    type: enumType(['auto', 'users', 'none']),
    default: 'auto',
    description:
      'How the process engine keeps accounts apart. auto: instances of every account except root run ' +
      'as a separate user, in namespaces if the machine supports them; if Berth is not permitted to ' +
      'do that, they are refused. users: without namespaces. ' +
      'none: all instances run as the user that runs Berth, and can read and change all data of each ' +
      'other and of Berth. See docs/isolation.md.',
  }),
  'process.users': defineSetting({
    type: textType(
      'a range of user ids such as 1900000000-1900065535',
      (value) => parseUserRange(value) !== undefined,
    ),
    default: '1900000000-1900065535',
    description:
      'The user ids of accounts on the process engine, one for each account and never two for one. ' +
      'Nothing else on the machine may use them. Change it in a container whose ids end at 65535.',
  }),
  'process.readablePaths': defineSetting({
    type: listOrWordType(['none'], 'folders'),
    default: 'none',
    description:
      'Folders of this machine that instances of all accounts may read on the process engine, ' +
      'beside the system and Berth itself: a Python outside /usr, or shared models.',
    example: 'process:\n  readablePaths: [/srv/models, /home/me/miniconda3]',
  }),
  docker: defineSetting({
    type: textType(
      'auto, off, or an address such as unix:///var/run/docker.sock',
      (value) =>
        value === 'auto' || value === 'off' || /^(unix|npipe|tcp|http|https|ssh):\/\/\S+$/.test(value),
    ),
    default: 'auto',
    description:
      'The address of the Docker daemon, or of Podman with the same API. auto: DOCKER_HOST, then ' +
      'the usual sockets, tried at the start and every few seconds until a daemon answers. off: ' +
      'Docker is not used.',
    example: 'docker: unix:///run/user/1000/podman/podman.sock',
  }),
  ecrEndpoint: defineSetting({
    type: urlType(),
    default: '',
    description:
      "The URL at which logins for delegated ECR registries are requested instead of Amazon's own, " +
      'such as a private endpoint of your network. AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY ' +
      'hold the AWS identity.',
  }),
  clusterNetwork: defineSetting({
    type: textType('a range of IPv4 addresses such as 10.65.0.0/16, from /8 to /24', isSubnet),
    default: '10.65.0.0/16',
    description:
      'The address range for the networks of clusters on container engines, 256 addresses for each ' +
      'cluster. Change it if your own network uses these addresses.',
  }),
  containerNetwork: defineSetting({
    type: textType(
      'a range of IPv4 addresses such as 10.80.0.0/12, from /8 to /20',
      (value) => isSubnet(value) && Number(value.split('/')[1]) <= 20,
    ),
    default: '10.80.0.0/12',
    description:
      'The address range for the networks of accounts on container engines, 1,024 addresses for ' +
      'each account. Change it if your own network uses these addresses.',
  }),
  prices: defineSetting({
    type: pricesType(),
    default: noPrices,
    description:
      'Prices in US dollars: per hour for each GPU or CPU type, per GB and month for each kind of ' +
      'disk. The default price is 0. With prices, the usage shows what your machines cost; see ' +
      'docs/billing.md.',
    example:
      'prices:\n  gpu: { NVIDIA A40: 0.40 }\n  cpu: { cpu3c: 0.04 }\n  disk: { container: 0.10, ' +
      'networkVolume: 0.07 }',
  }),
};
