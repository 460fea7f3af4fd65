import { DEFAULT_CONTAINER_CAPABILITIES } from '../../domain/placement/container-sandbox.ts';
import { parseReference, registryLogin } from '../image-reference.ts';
import type { InstanceSpec } from '../instance.ts';
import { searchDomain, serviceName } from './cluster-service.ts';
import { gpuAffinity } from './gpu-nodes.ts';
import type { ClusterSettings } from './kubernetes-options.ts';
import { instanceMetadata, podName } from './pod-labels.ts';
import { SHARED_DATA_FOLDER } from './volume-claims.ts';

export const CONTAINER_NAME = 'main';
/** For pods that others delete, such as a node that is drained. Berth names the period itself. */
const GRACE_SECONDS = 30;
const MIN_SHARED_MEMORY_MIB = 64;
const MIB_PER_GB = 1024;
/** The disk is a limit; this much of it is reserved. */
const RESERVED_DISK_MIB = 256;
const LOST_NODE_TAINTS = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
/** A host name is a DNS label. */
const HOST_NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** What a key of a Secret may be named like. */
const SECRET_KEY = /^[-._a-zA-Z0-9]{1,253}$/;

export interface ManifestContext {
  installation: string;
  dataCenterId: string;
  settings: ClusterSettings;
  /** The nodes' labels with the wanted GPU. */
  gpuProducts: readonly string[];
  /** The claims of its mounts, by path. Other mounts are folders that every node has. */
  claims: ReadonlyMap<string, string>;
}

/** What is created in the cluster for one instance. */
export interface InstanceManifests {
  name: string;
  pod: Record<string, unknown>;
  /** The environment: it holds tokens and secrets. */
  environment: Record<string, unknown>;
  /** Credentials to pull the image. */
  pullSecret: Record<string, unknown> | undefined;
}

export function instanceManifests(spec: InstanceSpec, context: ManifestContext): InstanceManifests {
  const { installation, dataCenterId, settings } = context;
  const name = podName(installation, spec.id);
  const metadata = instanceMetadata(installation, dataCenterId, {
    id: spec.id,
    image: spec.image,
    labels: spec.labels,
    ports: spec.ports.map(({ port }) => port),
    memoryInGb: spec.memoryInGb,
    gpus: spec.gpus === null ? null : { typeId: spec.gpus.typeId, count: spec.gpus.count },
  });
  const secretMetadata = (suffix: string): Record<string, unknown> => ({
    name: `${name}${suffix}`,
    labels: metadata.labels,
  });
  const env = environmentOf(spec);
  const inSecret = Object.entries(env).filter(([key]) => SECRET_KEY.test(key));
  return {
    name,
    environment: {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: secretMetadata('-env'),
      data: Object.fromEntries(inSecret.map(([key, value]) => [key, Buffer.from(value).toString('base64')])),
    },
    pullSecret: spec.registry && {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/dockerconfigjson',
      metadata: secretMetadata('-pull'),
      stringData: { '.dockerconfigjson': dockerConfig(spec.image, spec.registry) },
    },
    pod: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name,
        ...metadata,
        labels: {
          ...metadata.labels,
          ...(settings.queue !== undefined && { 'kueue.x-k8s.io/queue-name': settings.queue }),
        },
      },
      spec: podSpec(
        spec,
        name,
        context,
        Object.entries(env).filter(([key]) => !SECRET_KEY.test(key)),
      ),
    },
  };
}

function podSpec(
  spec: InstanceSpec,
  name: string,
  context: ManifestContext,
  plainEnv: readonly [string, string][],
): Record<string, unknown> {
  const { settings } = context;
  const { sandbox = {} } = spec;
  const runtimeClass = sandbox.runtime ?? settings.runtimeClass;
  const priorityClass =
    (spec.interruptible === true ? settings.interruptiblePriorityClass : undefined) ?? settings.priorityClass;
  const memory = Math.max(1, Math.round(spec.memoryInGb * MIB_PER_GB));
  return {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: GRACE_SECONDS,
    // The program is not the first process, as with an init process: zombies are reaped, and every signal
    // works.
    shareProcessNamespace: true,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    ...hostNames(spec, settings),
    ...(runtimeClass !== undefined && { runtimeClassName: runtimeClass }),
    ...(settings.scheduler !== undefined && { schedulerName: settings.scheduler }),
    ...(priorityClass !== undefined && { priorityClassName: priorityClass }),
    ...(sandbox.requireUserNamespaces === true && { hostUsers: false }),
    ...(spec.registry !== undefined && { imagePullSecrets: [{ name: `${name}-pull` }] }),
    ...(settings.nodeSelector !== undefined && { nodeSelector: settings.nodeSelector }),
    ...placement(spec, context),
    securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: CONTAINER_NAME,
        image: parseReference(spec.image).full,
        imagePullPolicy: 'IfNotPresent',
        ...(spec.command.entrypoint.length > 0 && { command: spec.command.entrypoint.map(literal) }),
        ...(spec.command.cmd.length > 0 && { args: spec.command.cmd.map(literal) }),
        envFrom: [{ secretRef: { name: `${name}-env` } }],
        env: [
          ...plainEnv.map(([key, value]) => ({ name: key, value: literal(value) })),
          ...(spec.network?.addressVariable === undefined
            ? []
            : [
                {
                  name: spec.network.addressVariable,
                  valueFrom: { fieldRef: { fieldPath: 'status.podIP' } },
                },
              ]),
        ],
        ports: [...new Set(spec.ports.map(({ port }) => port))].map((port) => ({ containerPort: port })),
        resources: resources(spec, settings, memory),
        securityContext: {
          privileged: false,
          allowPrivilegeEscalation: false,
          capabilities: {
            drop: ['ALL'],
            add: [...new Set([...DEFAULT_CONTAINER_CAPABILITIES, ...(sandbox.capabilities ?? [])])],
          },
        },
        volumeMounts: [
          { name: 'shm', mountPath: '/dev/shm' },
          ...spec.mounts.map(({ path, readOnly = false, volume }, index) => ({
            name: `mount-${index}`,
            mountPath: path,
            readOnly,
            ...(context.claims.has(path) && volume?.shared === true && { subPath: SHARED_DATA_FOLDER }),
          })),
        ],
      },
    ],
    volumes: [
      {
        name: 'shm',
        emptyDir: {
          medium: 'Memory',
          sizeLimit: `${Math.max(MIN_SHARED_MEMORY_MIB, Math.floor(memory / 2))}Mi`,
        },
      },
      ...spec.mounts.map(({ source, path }, index) => ({
        name: `mount-${index}`,
        ...(context.claims.has(path)
          ? { persistentVolumeClaim: { claimName: context.claims.get(path) } }
          : { hostPath: { path: source, type: 'DirectoryOrCreate' } }),
      })),
    ],
  };
}

/** The other members of a cluster resolve a member's host name; nothing resolves that of another pod. */
function hostNames({ id, network }: InstanceSpec, settings: ClusterSettings): Record<string, unknown> {
  if (network === undefined) return HOST_NAME.test(id) ? { hostname: id } : {};
  return {
    hostname: network.aliases[0],
    subdomain: serviceName(network.name),
    dnsConfig: { searches: [searchDomain(network.name, settings)] },
  };
}

/** The nodes that it may run on. */
function placement(
  { gpus, labels }: InstanceSpec,
  { settings, gpuProducts }: ManifestContext,
): Record<string, unknown> {
  const tolerations = [
    ...(settings.tolerations ?? []),
    ...(gpus === null ? [] : [{ key: settings.gpuResource, operator: 'Exists', effect: 'NoSchedule' }]),
    // Kubernetes waits five minutes. A pod may come back with its node, but the jobs of a worker are waited
    // for.
    ...(labels['kind'] === 'worker'
      ? LOST_NODE_TAINTS.map((key) => ({
          key,
          operator: 'Exists',
          effect: 'NoExecute',
          tolerationSeconds: settings.lostNodeSeconds,
        }))
      : []),
  ];
  return {
    ...(tolerations.length > 0 && { tolerations }),
    ...(gpus !== null && { affinity: gpuAffinity(settings.gpuLabel, gpuProducts) }),
  };
}

function resources(
  { cpu, gpus, containerDiskInGb }: InstanceSpec,
  { cpuRequestRatio, memoryRequestRatio, gpuResource }: ClusterSettings,
  memory: number,
): Record<string, unknown> {
  const disk = Math.round(containerDiskInGb * MIB_PER_GB);
  const gpu = gpus !== null && gpus.count > 0 && { [gpuResource]: String(gpus.count) };
  return {
    limits: {
      ...(cpu > 0 && { cpu: `${Math.round(cpu * 1000)}m` }),
      memory: `${memory}Mi`,
      ...(disk > 0 && { 'ephemeral-storage': `${disk}Mi` }),
      ...gpu,
    },
    requests: {
      ...(cpu > 0 && { cpu: `${Math.max(1, Math.round(cpu * 1000 * cpuRequestRatio))}m` }),
      memory: `${Math.max(1, Math.round(memory * memoryRequestRatio))}Mi`,
      ...(disk > 0 && { 'ephemeral-storage': `${Math.min(disk, RESERVED_DISK_MIB)}Mi` }),
      ...gpu,
    },
  };
}

function environmentOf({ env, ports, gpus }: InstanceSpec): Record<string, string> {
  const portVariables = ports.flatMap(({ port, listenPortVariable, publicPortVariable }) =>
    [listenPortVariable, publicPortVariable].flatMap((name) =>
      name === undefined ? [] : [[name, String(port)]],
    ),
  );
  return {
    ...env,
    ...Object.fromEntries(portVariables),
    // Images built for GPUs ask the runtime for all of them, also where none was requested.
    ...((gpus === null || gpus.count === 0) && { NVIDIA_VISIBLE_DEVICES: 'void' }),
  };
}

/** Kubernetes replaces $(NAME) and $$ in arguments. */
function literal(text: string): string {
  return text.replaceAll('$', () => '$$');
}

function dockerConfig(image: string, registry: { username: string; password: string }): string {
  const { username, password, serveraddress } = registryLogin(image, registry);
  const auth = Buffer.from(`${username}:${password}`).toString('base64');
  return JSON.stringify({ auths: { [serveraddress]: { username, password, auth } } });
}
