import type { Sealer } from '../../support/crypto.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { Row } from '../sql.ts';
import { toFlag } from './owned-table.ts';

interface EndpointRow {
  id: string;
  account_id: string;
  name: string;
  type: string;
  compute: string;
  image: string;
  args: string;
  container_disk: number;
  ports: string;
  sealed_env: string;
  registry_id: string | null;
  template_id: string | null;
  template_linked: number;
  template_bound: number;
  gpu_type_ids: string;
  gpu_pools: string;
  excluded_gpu_types: string;
  gpu_count: number;
  cpu_flavors: string;
  allowed_cuda_versions: string;
  min_cuda_version: string | null;
  data_center_ids: string;
  locations: string;
  network_volume_ids: string;
  workers_min: number;
  workers_max: number;
  workers_standby: number;
  idle_timeout: number;
  scaler_type: string;
  scaler_value: number;
  execution_timeout: number;
  job_ttl: number;
  retention: number | null;
  max_retries: number;
  flashboot: string;
  accelerate: number | null;
  model_references: string;
  compliance: string;
  version: number;
  created_at: number;
  updated_at: number;
}

/** How an endpoint is stored in its table. */
export interface EndpointRows {
  toRow(endpoint: Endpoint): Row & EndpointRow;
  fromRow(found: Row): Endpoint;
}

export function endpointRows(sealer: Sealer): EndpointRows {
  return {
    toRow: (endpoint) => ({
      id: endpoint.id,
      account_id: endpoint.accountId,
      name: endpoint.name,
      type: endpoint.type,
      compute: endpoint.compute,
      image: endpoint.image,
      args: endpoint.args,
      container_disk: endpoint.containerDisk,
      ports: JSON.stringify(endpoint.ports),
      sealed_env: sealer.seal(JSON.stringify(endpoint.env), `endpoint ${endpoint.id}`),
      registry_id: endpoint.registryId,
      template_id: endpoint.templateId,
      template_linked: toFlag(endpoint.templateLinked),
      template_bound: toFlag(endpoint.templateBound),
      gpu_type_ids: JSON.stringify(endpoint.gpuTypeIds),
      gpu_pools: JSON.stringify(endpoint.gpuPools),
      excluded_gpu_types: JSON.stringify(endpoint.excludedGpuTypes),
      gpu_count: endpoint.gpuCount,
      cpu_flavors: JSON.stringify(endpoint.cpuFlavors),
      allowed_cuda_versions: JSON.stringify(endpoint.allowedCudaVersions),
      min_cuda_version: endpoint.minCudaVersion,
      data_center_ids: JSON.stringify(endpoint.dataCenterIds),
      locations: endpoint.locations,
      network_volume_ids: JSON.stringify(endpoint.networkVolumeIds),
      workers_min: endpoint.workersMin,
      workers_max: endpoint.workersMax,
      workers_standby: endpoint.workersStandby,
      idle_timeout: endpoint.idleTimeout,
      scaler_type: endpoint.scalerType,
      scaler_value: endpoint.scalerValue,
      execution_timeout: endpoint.executionTimeout,
      job_ttl: endpoint.jobTtl,
      retention: endpoint.retention,
      max_retries: endpoint.maxRetries,
      flashboot: endpoint.flashboot,
      accelerate: endpoint.accelerate === null ? null : toFlag(endpoint.accelerate),
      model_references: JSON.stringify(endpoint.modelReferences),
      compliance: JSON.stringify(endpoint.compliance),
      version: endpoint.version,
      created_at: endpoint.createdAt,
      updated_at: endpoint.updatedAt,
    }),

    fromRow: (found) => {
      const endpoint = found as unknown as EndpointRow;
      return {
        id: endpoint.id,
        accountId: endpoint.account_id,
        name: endpoint.name,
        type: endpoint.type as Endpoint['type'],
        compute: endpoint.compute as Endpoint['compute'],
        image: endpoint.image,
        args: endpoint.args,
        containerDisk: endpoint.container_disk,
        ports: texts(endpoint.ports),
        env: JSON.parse(sealer.open(endpoint.sealed_env, `endpoint ${endpoint.id}`)) as Record<
          string,
          string
        >,
        registryId: endpoint.registry_id,
        templateId: endpoint.template_id,
        templateLinked: endpoint.template_linked === 1,
        templateBound: endpoint.template_bound === 1,
        gpuTypeIds: texts(endpoint.gpu_type_ids),
        gpuPools: texts(endpoint.gpu_pools),
        excludedGpuTypes: texts(endpoint.excluded_gpu_types),
        gpuCount: endpoint.gpu_count,
        cpuFlavors: JSON.parse(endpoint.cpu_flavors) as Endpoint['cpuFlavors'],
        allowedCudaVersions: texts(endpoint.allowed_cuda_versions),
        minCudaVersion: endpoint.min_cuda_version,
        dataCenterIds: texts(endpoint.data_center_ids),
        locations: endpoint.locations,
        networkVolumeIds: texts(endpoint.network_volume_ids),
        workersMin: endpoint.workers_min,
        workersMax: endpoint.workers_max,
        workersStandby: endpoint.workers_standby,
        idleTimeout: endpoint.idle_timeout,
        scalerType: endpoint.scaler_type as Endpoint['scalerType'],
        scalerValue: endpoint.scaler_value,
        executionTimeout: endpoint.execution_timeout,
        jobTtl: endpoint.job_ttl,
        retention: endpoint.retention,
        maxRetries: endpoint.max_retries,
        flashboot: endpoint.flashboot as Endpoint['flashboot'],
        accelerate: endpoint.accelerate === null ? null : endpoint.accelerate === 1,
        modelReferences: texts(endpoint.model_references),
        compliance: texts(endpoint.compliance),
        version: endpoint.version,
        createdAt: endpoint.created_at,
        updatedAt: endpoint.updated_at,
      };
    },
  };
}

function texts(json: string): string[] {
  return JSON.parse(json) as string[];
}
