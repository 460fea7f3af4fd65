import type { InstanceEngine } from '../../engines/engine.ts';
import type { PodReferences, PodReferenceIds } from '../../store/pod-store.ts';
import type { NetworkVolume, Template } from '../../domain/records.ts';
import { BerthError, ruleError, schemaError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { CPU_FLAVORS } from '../../domain/catalog/cpu-flavors.ts';
import type { PriceSettings } from '../../domain/catalog/prices.ts';
import type { ResourceContext } from '../resource-context.ts';
import { cpuFindings } from '../../domain/catalog/cpu-selection.ts';
import { gpuFindings, normalizeGpuIds } from '../../domain/catalog/gpu-selection.ts';
import { dataCenterFindings } from '../../domain/endpoints/endpoint-locations.ts';
import type { Templates } from '../templates/templates.ts';
import { podHourlyCost, bidFindings } from '../../domain/hourly-cost.ts';
import { POD_DEFAULTS, podFieldsFromTemplate } from '../../domain/pods/pod-input.ts';
import type { NewPod, PodInput, PodTemplateUse } from '../../domain/pods/pod-input.ts';
import type { HardwareRequest, PodPlacement, PodCandidate } from '../../domain/placement/pod-placement.ts';
import { podFindings, hardwareFindings } from '../../domain/pods/pod-rules.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';
import { readCatalogSnapshot } from '../catalog/read-catalog-snapshot.ts';

/** A checked request for a pod that has no placement yet. */
export interface PreparedPod {
  interruptible: boolean;
  hardware: HardwareRequest;
  candidates: PodCandidate[];
  referenceIds: PodReferenceIds;
  /** Throws if a resource that the pod refers to does not exist. */
  checkReferences(references: PodReferences): { volume: NetworkVolume | undefined };
  build(id: string, placement: PodPlacement, volume: NetworkVolume | undefined): Pod;
}

/** What the preparation of a pod reads. */
export interface PodPreparationDeps {
  catalog: Catalog;
  templates: Templates;
  prices: PriceSettings;
  /** By data center. */
  engines: ReadonlyMap<string, InstanceEngine>;
}

/** Checks requests for pods, and finds out where a pod could run, before anything is stored. */
export class PodPreparation {
  readonly #context: ResourceContext;
  readonly #deps: PodPreparationDeps;

  constructor(context: ResourceContext, deps: PodPreparationDeps) {
    this.#context = context;
    this.#deps = deps;
  }

  /**
   * Checks a request as far as that is possible before placement. `id` is the id of the pod, or a sample id
   * if several pods are created from one request.
   */
  async prepare(caller: Caller, input: NewPod, id = this.#context.ids.resource()): Promise<PreparedPod> {
    const now = this.#context.clock.now();
    const hardware = await this.#checkedHardware(input.hardware);
    const template = await this.template(caller, input.template);
    const buildPod = (podId: string): Pod => {
      const blank: Pod = {
        ...POD_DEFAULTS,
        ...input.defaults,
        compute: hardware.compute,
        id: podId,
        accountId: caller.accountId,
        createdAt: now,
        updatedAt: now,
        statusChangedAt: now,
      };
      const base: Pod = {
        ...blank,
        ...(template && podFieldsFromTemplate(template, caller.accountId, hardware.compute)),
        ...(input.networkVolumeId !== undefined && { volumeSize: 0 }),
      };
      return withRegistry(input, {
        ...base,
        ...input.settings(base),
        templateId: input.template?.isRecorded === true ? input.template.id : null,
        networkVolumeId: input.networkVolumeId ?? null,
      });
    };
    const wanted = buildPod(id);
    throwFindings([
      ...podFindings(wanted),
      ...hardwareFindings(hardware),
      ...bidFindings(this.#deps.prices, hardware.gpuTypeIds, wanted),
    ]);
    return {
      interruptible: wanted.interruptible,
      hardware: { ...hardware, cuda: cudaRequirement(hardware, template) },
      candidates: await this.candidates(wanted.accountId, wanted.image),
      referenceIds: {
        ...registryOf(input),
        ...(input.networkVolumeId !== undefined && { volumeId: input.networkVolumeId }),
        needsPlacement: true,
      },
      checkReferences: ({ registryFound, volume }) => {
        checkRegistry(input, registryFound);
        if (input.networkVolumeId !== undefined && volume === undefined)
          throw ruleError(
            `network volume ${JSON.stringify(input.networkVolumeId.slice(0, 64))} does not exist in ` +
              'this account; create it first or leave it out',
          );
        return { volume };
      },
      build: (podId, placement, volume) => {
        // Network volumes exist only in the secure cloud.
        const record: Pod = {
          ...buildPod(podId),
          ...placement,
          ...(volume !== undefined && { cloud: 'SECURE' }),
        };
        return { ...record, costPerHour: podHourlyCost(this.#deps.prices, record) };
      },
    };
  }

  /** The template that a request names, if it is for pods. */
  async template(caller: Caller, use: PodTemplateUse | undefined): Promise<Template | undefined> {
    if (use === undefined) return undefined;
    const template = await this.#deps.templates.get(caller, use.id).catch((error: unknown) => {
      if (use.isRecorded && error instanceof BerthError && error.code === 'not-found')
        throw ruleError(
          `template ${JSON.stringify(use.id.slice(0, 64))} does not exist, or is not yours to use; ` +
            'create it first or name another',
        );
      throw error;
    });
    if (!template.serverless) return template;
    const finding =
      `template ${JSON.stringify(template.name)} is for ` +
      'endpoints; a pod needs one that is not serverless';
    throw use.isRecorded ? ruleError(finding) : schemaError([`$.templateId: ${finding}`]);
  }

  /** Where a pod could run. An engine that does not answer counts as having no capacity. */
  async candidates(accountId: string, image: string): Promise<PodCandidate[]> {
    const names = new Map(this.#deps.catalog.dataCenters().map(({ id, engine }) => [id, engine]));
    const candidates = await Promise.all(
      [...this.#deps.engines].map(async ([dataCenterId, engine]): Promise<PodCandidate[]> => {
        try {
          return [
            {
              dataCenterId,
              engine: names.get(dataCenterId) ?? engine.kind,
              capacity: await engine.capacity(),
              imageProblem: engine.accountProblem?.(accountId) ?? engine.imageProblem(image),
              ...(engine.capabilities.networks !== undefined && { network: engine.capabilities.networks }),
              ...(engine.subnetsInUse !== undefined && {
                subnetsInUse: () => engine.subnetsInUse?.() ?? Promise.resolve([]),
              }),
            },
          ];
        } catch (error) {
          if (error instanceof BerthError && error.code === 'unavailable') return [];
          throw error;
        }
      }),
    );
    return candidates.flat();
  }

  async #checkedHardware(request: HardwareRequest): Promise<HardwareRequest> {
    const catalogSnapshot = await readCatalogSnapshot(this.#deps.catalog);
    const selection = normalizeGpuIds({
      gpuTypeIds: [...request.gpuTypeIds],
      gpuPools: [],
      excludedGpuTypes: [],
    });
    const cpuFlavors = CPU_FLAVORS.filter(({ products }) => products.includes('POD'));
    throwFindings([
      ...(request.compute === 'GPU'
        ? gpuFindings(selection, catalogSnapshot)
        : request.cpuFlavors.length === 0
          ? []
          : cpuFindings(request.cpuFlavors, { ...catalogSnapshot, cpuFlavors })),
      ...dataCenterFindings(request.dataCenterIds, catalogSnapshot),
    ]);
    return { ...request, gpuTypeIds: selection.gpuTypeIds };
  }
}

/** A template's CUDA versions are defaults; any CUDA requirement of the request replaces them. */
function cudaRequirement(
  { compute, cuda }: HardwareRequest,
  template: Template | undefined,
): HardwareRequest['cuda'] {
  const isGiven = cuda.allowed !== undefined || typeof cuda.minimum === 'string';
  return isGiven || template === undefined || compute === 'CPU'
    ? cuda
    : { allowed: template.allowedCudaVersions };
}

export function withRegistry({ registryId }: PodInput, pod: Pod): Pod {
  return registryId === undefined ? pod : { ...pod, registryId };
}

export function registryOf({ registryId }: PodInput): { registryId?: string } {
  return typeof registryId === 'string' ? { registryId } : {};
}

export function checkRegistry({ registryId }: PodInput, found: boolean): void {
  if (typeof registryId === 'string' && !found)
    throw ruleError(
      `registry ${JSON.stringify(registryId.slice(0, 64))} does not exist in this account; create it ` +
        'first or leave it out',
    );
}

export function throwFindings(findings: string[]): void {
  if (findings.length > 0) throw new BerthError('rule', findings.join('; '), { details: findings });
}
