import { SMALL_CPU } from '../../packages/testing/src/pod-client.ts';

export const RTX = 'NVIDIA GeForce RTX 4090';
export const A100 = 'NVIDIA A100 80GB PCIe';
export const FULL =
  /There are no longer any instances available with the requested specifications\. Please refresh and try again\./;
export const image = 'local/shell';
export const manyPorts = Array.from({ length: 11 }, (_, index) => `${8000 + index}/http`);
export const variables = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`V${index}`, 'x']));

/** What is sent, the status of the answer, and a word of what it says. */
export type BadRequest = [what: string, body: Record<string, unknown>, status: number, word: RegExp];

export const badCreations: BadRequest[] = [
  ['both gpu and cpu', { name: 'x', image, gpu: { id: A100 }, cpu: SMALL_CPU }, 400, /exactly one/],
  ['neither gpu nor cpu', { name: 'x', image }, 400, /exactly one/],
  ['no name', { image, cpu: SMALL_CPU }, 422, /name/],
  ['an empty name', { name: '', image, cpu: SMALL_CPU }, 422, /name/],
  ['no image', { name: 'x', cpu: SMALL_CPU }, 422, /image/],
  [
    'a field that only older interfaces have',
    { name: 'x', image, cpu: SMALL_CPU, interruptible: true },
    422,
    /interruptible/,
  ],
  ['an unknown field', { name: 'x', image, cpu: SMALL_CPU, colour: 'red' }, 422, /colour/],
  ['an unknown field of gpu', { name: 'x', image, gpu: { id: A100, pools: [] } }, 422, /pools/],
  ['a port out of range', { name: 'x', image, cpu: SMALL_CPU, ports: ['65536/http'] }, 400, /65536/],
  ['port 0', { name: 'x', image, cpu: SMALL_CPU, ports: ['0/tcp'] }, 400, /0\/tcp/],
  ['a port that is none', { name: 'x', image, cpu: SMALL_CPU, ports: ['http'] }, 400, /http/],
  ['a protocol that is none', { name: 'x', image, cpu: SMALL_CPU, ports: ['53/udp'] }, 400, /udp/],
  ['the same port twice', { name: 'x', image, cpu: SMALL_CPU, ports: ['80/http', '80/http'] }, 400, /twice/],
  ['11 HTTP ports', { name: 'x', image, cpu: SMALL_CPU, ports: manyPorts }, 400, /at most 10/],
  [
    '51 variables',
    { name: 'x', image, cpu: SMALL_CPU, env: variables(51) },
    400,
    /at most 50 environment variables, got 51/,
  ],
  ['a variable without a name', { name: 'x', image, cpu: SMALL_CPU, env: { '': 'x' } }, 400, /name/],
  ['an unknown GPU type', { name: 'x', image, gpu: { id: 'NVIDIA Abacus' } }, 400, /Abacus/],
  ['no GPU', { name: 'x', image, gpu: { id: A100, count: 0 } }, 422, /count/],
  ['more GPUs than any machine has', { name: 'x', image, gpu: { id: A100, count: 9 } }, 400, FULL],
  ['an odd number of vCPUs', { name: 'x', image, cpu: { id: 'cpu3c', vcpuCount: 3 } }, 400, /vcpu/i],
  ['an unknown CPU flavour', { name: 'x', image, cpu: { id: 'cpu9z', vcpuCount: 2 } }, 400, /cpu9z/],
  ['an unknown data center', { name: 'x', image, cpu: SMALL_CPU, dataCenterIds: ['MOON-1'] }, 400, /MOON-1/],
  [
    'both mounts',
    {
      name: 'x',
      image,
      gpu: { id: A100 },
      mounts: { persistent: { size: 10, path: '/a' }, network: [{ volumeId: 'v', path: '/b' }] },
    },
    400,
    /exclude each other/,
  ],
  [
    'two network volumes',
    {
      name: 'x',
      image,
      cpu: SMALL_CPU,
      mounts: {
        network: [
          { volumeId: 'v', path: '/a' },
          { volumeId: 'w', path: '/b' },
        ],
      },
    },
    422,
    /network/,
  ],
  [
    'an empty list of network volumes',
    { name: 'x', image, cpu: SMALL_CPU, mounts: { network: [] } },
    400,
    /one entry/,
  ],
  [
    'half a mount',
    { name: 'x', image, gpu: { id: A100 }, mounts: { persistent: { size: 10 } } },
    422,
    /path/,
  ],
  [
    'a small persistent mount',
    { name: 'x', image, gpu: { id: A100 }, mounts: { persistent: { size: 9, path: '/a' } } },
    422,
    /size/,
  ],
  [
    'a persistent mount on a CPU pod',
    { name: 'x', image, cpu: SMALL_CPU, mounts: { persistent: { size: 10, path: '/a' } } },
    400,
    /CPU pod/,
  ],
  [
    'a mount path that is none',
    { name: 'x', image, gpu: { id: A100 }, mounts: { persistent: { size: 10, path: 'workspace' } } },
    400,
    /absolute path/,
  ],
  [
    'an unknown network volume',
    { name: 'x', image, cpu: SMALL_CPU, mounts: { network: [{ volumeId: 'unknown', path: '/a' }] } },
    400,
    /unknown/,
  ],
  ['unknown registry credentials', { name: 'x', image, cpu: SMALL_CPU, registry: 'unknown' }, 400, /unknown/],
  ['an image that needs containers', { name: 'x', image: 'python:3.12', cpu: SMALL_CPU }, 400, /container/],
  [
    'a set of CUDA versions and a floor',
    { name: 'x', image, gpu: { id: A100, allowedCudaVersions: ['12.8'], minCudaVersion: '12.1' } },
    400,
    /exclude each other/,
  ],
  [
    'a CUDA version that is none',
    { name: 'x', image, gpu: { id: A100, minCudaVersion: '12' } },
    422,
    /minCudaVersion/,
  ],
  ['an instant that is none', { name: 'x', image, cpu: SMALL_CPU, stopAfter: 'tomorrow' }, 422, /stopAfter/],
  ['a disk of nothing', { name: 'x', image, cpu: SMALL_CPU, disk: 0 }, 422, /disk/],
  ['a template that is not there', { name: 'x', cpu: SMALL_CPU, templateId: 'unknown' }, 404, /unknown/],
];

export const badChanges: BadRequest[] = [
  [
    'a smaller volume',
    { mounts: { persistent: { size: 19, path: '/workspace' } } },
    400,
    /cannot shrink: it has 20 GB/,
  ],
  ['a smaller container disk', { disk: 1 }, 400, /cannot shrink/],
  ['another kind of mount', { mounts: { network: [{ volumeId: 'v', path: '/b' }] } }, 400, /fixed/],
  ['an empty list of network volumes', { mounts: { network: [] } }, 400, /one entry/],
  ['11 HTTP ports', { ports: manyPorts }, 400, /at most 10/],
  ['a port out of range', { ports: ['70000/http'] }, 400, /70000/],
  ['51 variables', { env: variables(51) }, 400, /at most 50/],
  ['a GPU', { gpu: { id: RTX } }, 422, /gpu/],
  ['an unknown field', { colour: 'red' }, 422, /colour/],
  ['an empty name', { name: '' }, 422, /name/],
  ['args that are not closed', { args: 'sh -c "' }, 400, /quote|closed/i],
  ['args and cmd that differ', { args: 'a', cmd: ['b'] }, 400, /different things/],
  ['unknown registry credentials', { registry: 'unknown' }, 400, /unknown/],
];

export const badV1Creations: BadRequest[] = [
  ['no image', { computeType: 'CPU' }, 400, /imageName/],
  [
    'an unknown field',
    { imageName: image, computeType: 'CPU', gpu: { id: A100 } },
    400,
    /Extra input keys provided in request body/,
  ],
  ['no GPU', { imageName: image, gpuCount: 0 }, 400, /gpuCount/],
  ['11 HTTP ports', { imageName: image, ports: manyPorts }, 400, /at most 10/],
  ['a port out of range', { imageName: image, ports: ['0/tcp'] }, 400, /0\/tcp/],
  ['51 variables', { imageName: image, computeType: 'CPU', env: variables(51) }, 400, /at most 50/],
  ['an unknown GPU type', { imageName: image, gpuTypeIds: ['NVIDIA Abacus'] }, 400, /Abacus/],
  ['an unknown network volume', { imageName: image, networkVolumeId: 'unknown' }, 400, /unknown/],
  ['a name that is too long', { imageName: image, name: 'x'.repeat(192) }, 400, /name/],
  ['an unknown template', { computeType: 'CPU', templateId: 'unknown' }, 400, /unknown/],
];
