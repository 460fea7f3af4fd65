import type { ContainerStatus, PodObject } from './kubernetes-objects.ts';
import { detailsAnnotation } from './pod-labels.ts';

/** Those that say what a pod waits for, or why it ended. */
const CONDITIONS = ['PodScheduled', 'Ready', 'DisruptionTarget'];

/** What Berth reads of a pod: a tenth of the object, which is kept for as long as the pod is there. */
export function selectPod({ metadata, spec, status }: PodObject): PodObject {
  const { name, uid, namespace, resourceVersion, creationTimestamp, deletionTimestamp, labels } = metadata;
  return {
    metadata: {
      name,
      uid,
      ...defined({ namespace, resourceVersion, creationTimestamp, deletionTimestamp, labels }),
      annotations: detailsAnnotation(metadata),
    },
    spec: { ...defined({ nodeName: spec.nodeName }), containers: [] },
    ...(status !== undefined && { status: selectStatus(status) }),
  };
}

function selectStatus({
  phase,
  reason,
  message,
  podIP,
  startTime,
  conditions,
  containerStatuses,
}: NonNullable<PodObject['status']>): NonNullable<PodObject['status']> {
  return defined({
    phase,
    reason,
    message,
    podIP,
    startTime,
    conditions: conditions
      ?.filter(({ type }) => CONDITIONS.includes(type))
      .map(({ type, status, reason: why, message: text }) =>
        defined({ type, status, reason: why, message: text }),
      ),
    containerStatuses: containerStatuses?.map(({ name, image, state }: ContainerStatus) =>
      defined({ name, image, state }),
    ),
  });
}

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** Without the fields that are not there. */
function defined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}
