import type { Caller } from '../../domain/caller.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';
import { desiredStatus } from '../../domain/pods/pod-states.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { list } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { operation } from '../rest/rest-operation.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { allowedDataCenterIds, createPodInput, updatePodInput } from './pods.v1.input.ts';
import { serializePod } from './pods.v1.json.ts';
import type { ListedPod } from './pods.v1.json.ts';
import { byPodId, createPod, getPodQuery, listPodsQuery, pod, updatePod } from './pods.v1.schema.ts';
import { serializeTemplate } from './templates.v1.routes.ts';

type Include = Static<typeof getPodQuery>;

export function podOperations({ pods, catalog, volumes, templates }: ResourceServices): Operation[] {
  const tag = 'Pods';

  const shown = async (
    caller: Caller,
    found: readonly ListedPod[],
    query: Include,
  ): Promise<Static<typeof pod>[]> => {
    const offers = found.length === 0 ? [] : await catalog.gpus();
    const mounted = query.includeNetworkVolume === true ? await volumes.list(caller) : [];
    return Promise.all(
      found.map(async (one) => {
        const { templateId } = one.pod;
        // A pod outlives its owner's view of a template that somebody else made.
        const template =
          query.includeTemplate === true && templateId !== null
            ? await templates.find(caller, templateId)
            : undefined;
        const { dataCenterId, gpuTypeId } = one.pod;
        const isVirtual = gpuTypeId !== null && (await catalog.isVirtualGpu(dataCenterId, gpuTypeId));
        const runtime = await pods.runtime(one.pod);
        return {
          ...serializePod(one, runtime, offers, mounted, query.includeMachine === true, isVirtual),
          ...(template !== undefined && { template: serializeTemplate(template) }),
          ...(query.includeSavingsPlans === true && { savingsPlans: [] }),
        };
      }),
    );
  };
  const showOne = async (caller: Caller, found: Pod, query: Include = {}): Promise<Static<typeof pod>> =>
    (await shown(caller, [{ pod: found }], query))[0] as Static<typeof pod>;

  const update = {
    tag,
    access: 'write' as const,
    params: byPodId,
    body: updatePod,
    status: 200 as const,
    response: pod,
    errorStatuses: [400, 404],
    handle: async ({
      caller,
      params,
      body,
    }: {
      caller: Caller;
      params: { podId: string };
      body: Static<typeof updatePod>;
    }) => showOne(caller, await pods.update(caller, params.podId, updatePodInput(body))),
  };
  const action = (name: 'start' | 'stop' | 'reset' | 'restart', summary: string): Operation =>
    operation({
      id: `${name}Pod`,
      method: 'POST',
      path: `/pods/{podId}/${name}`,
      tag,
      summary,
      access: 'write',
      params: byPodId,
      podIdParam: 'podId',
      status: 200,
      response: pod,
      errorStatuses: name === 'start' ? [400, 402, 404, 507] : [400, 404],
      handle: async ({ caller, params }) => showOne(caller, await pods[name](caller, params.podId)),
    });

  return [
    operation({
      id: 'createPod',
      method: 'POST',
      path: '/pods',
      tag,
      summary: 'Create a pod',
      access: 'write',
      body: createPod,
      status: 201,
      response: pod,
      errorStatuses: [400, 402, 507],
      handle: async ({ caller, body }) =>
        showOne(
          caller,
          await pods.create(
            caller,
            createPodInput(
              body,
              allowedDataCenterIds(
                catalog.dataCenters({
                  countryCodes: (body.countryCodes ?? []).map((code) => code.toUpperCase()),
                }),
                body,
              ),
            ),
          ),
        ),
    }),
    operation({
      id: 'listPods',
      method: 'GET',
      path: '/pods',
      tag,
      summary: 'List your pods',
      access: 'read',
      query: listPodsQuery,
      status: 200,
      response: list(pod),
      errorStatuses: [400],
      handle: async ({ caller, query }) => {
        const own: ListedPod[] = (await pods.list(caller)).map((found) => ({ pod: found }));
        const workers: ListedPod[] =
          query.includeWorkers === true || query.endpointId !== undefined
            ? await pods.workers(caller, query.endpointId)
            : [];
        return shown(
          caller,
          [...own, ...workers].filter((found) => matches(found, query)),
          query,
        );
      },
    }),
    operation({
      id: 'getPod',
      method: 'GET',
      path: '/pods/{podId}',
      tag,
      summary: 'Get a pod',
      access: 'read',
      params: byPodId,
      podIdParam: 'podId',
      query: getPodQuery,
      status: 200,
      response: pod,
      errorStatuses: [400, 404],
      handle: async ({ caller, params, query }) =>
        showOne(caller, await pods.get(caller, params.podId), query),
    }),
    operation({
      ...update,
      id: 'updatePod',
      method: 'PATCH',
      path: '/pods/{podId}',
      summary: 'Update a pod; more than its name and lock resets it',
    }),
    operation({
      ...update,
      id: 'updatePodByPost',
      method: 'POST',
      path: '/pods/{podId}/update',
      summary: 'Update a pod (the same as PATCH)',
    }),
    operation({
      id: 'deletePod',
      method: 'DELETE',
      path: '/pods/{podId}',
      tag,
      summary: 'Terminate a pod',
      access: 'write',
      params: byPodId,
      podIdParam: 'podId',
      status: 204,
      errorStatuses: [400, 404],
      handle: ({ caller, params }) => pods.terminate(caller, params.podId),
    }),
    action('start', 'Start a pod that was stopped'),
    action('stop', 'Stop a pod; its volume stays'),
    action('reset', 'Give a pod a fresh container; its volume stays'),
    action('restart', 'Restart a pod'),
  ];
}

/** Every filter that is given must hold. */
function matches({ pod: found, endpointId }: ListedPod, query: Static<typeof listPodsQuery>): boolean {
  const among = (wanted: readonly string[] | undefined, value: string | null): boolean =>
    wanted === undefined || wanted.length === 0 || (value !== null && wanted.includes(value));
  const is = (wanted: string | undefined, value: string | null | undefined): boolean =>
    wanted === undefined || wanted === value;
  return (
    is(query.computeType, found.compute) &&
    is(query.desiredStatus, desiredStatus(found)) &&
    is(query.id, found.id) &&
    is(query.imageName, found.image) &&
    is(query.name, found.name) &&
    is(query.networkVolumeId, found.networkVolumeId) &&
    is(query.templateId, found.templateId) &&
    is(query.endpointId, endpointId) &&
    among(query.cpuFlavorId, found.cpuFlavorId) &&
    among(query.dataCenterId, found.dataCenterId) &&
    among(query.gpuTypeId, found.gpuTypeId)
  );
}
