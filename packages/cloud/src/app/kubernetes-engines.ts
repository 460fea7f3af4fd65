import { resolve } from 'node:path';
import { SnapshotUrls } from '../auth/snapshot-urls.ts';
import { KUBERNETES_DATA_CENTER } from '../domain/catalog/data-centers.ts';
import type { KubernetesEngine } from '../engines/kubernetes/kubernetes-engine.ts';
import type { Clock } from '../support/clock.ts';
import type { Config } from '../support/config/config.ts';
import type { DataCenterConfig } from '../support/config/data-centers.setting.ts';
import { deriveKey } from '../support/crypto.ts';
import type { Log } from '../support/log.ts';
import { createDeployedFolders } from './deployed-folders.ts';
import type { ServerAddress } from './server-address.ts';

const MS_PER_SECOND = 1000;
const LOOPBACK = /^(?:127\.|\[::1\]$|localhost$)/;

/** A cluster that serves one data center. */
export interface ConnectedCluster {
  engine: KubernetesEngine;
  /** The URL at which its pods reach this server. */
  workerUrl(): string;
}

export interface KubernetesEnginesDeps {
  clock: Clock;
  log: Log;
  address: ServerAddress;
  installation: () => string;
  /** Whether this server manages instances with these labels now; without labels, whether it manages any. */
  isLeading: (labels?: Readonly<Record<string, string>>) => boolean;
  /** Whether servers share the work of managing workers. */
  isShared: boolean;
  masterKey: Buffer;
}

/** The clusters by data center. The engine's code is loaded only where there is one. */
export async function createKubernetesEngines(
  config: Config,
  { clock, log, address, installation, isLeading, isShared, masterKey }: KubernetesEnginesDeps,
): Promise<Map<string, ConnectedCluster>> {
  const configured = config.dataCenters.filter(({ engine }) => engine === 'kubernetes');
  const dataCenters: DataCenterConfig[] =
    configured.length > 0 || config.kubeconfig === '' ? configured : [{ id: KUBERNETES_DATA_CENTER.id }];
  if (dataCenters.length === 0) return new Map();
  const { KubernetesEngine } = await import('../engines/kubernetes/kubernetes-engine.ts');
  return new Map(
    dataCenters.map((dataCenter) => {
      const engine: KubernetesEngine = new KubernetesEngine({
        ...engineSettings(dataCenter, config),
        dataCenterId: dataCenter.id,
        installation: installation(),
        isLeading,
        isShared,
        volumeKey: deriveKey(masterKey, 'berth volume servers'),
        data: resolve(config.data),
        clock,
        log,
        deployedFolders: createDeployedFolders(config, new SnapshotUrls(masterKey), () =>
          Promise.resolve(workerUrl()),
        ),
      });
      let isWarned = false;
      const workerUrl = (): string => {
        const url = dataCenter.workerUrl ?? (config.workerUrl || address.listeningOrigin);
        if (LOOPBACK.test(new URL(url).hostname) && !isWarned) {
          isWarned = true;
          log.warn(
            { dataCenter: dataCenter.id, url },
            'pods of the Kubernetes cluster cannot reach this server: it listens on the loopback ' +
              'interface only; set workerUrl (BERTH_WORKER_URL), and host',
          );
        }
        engine.allowServer(url, config.port > 0 ? config.port : undefined);
        return url;
      };
      return [dataCenter.id, { engine, workerUrl }];
    }),
  );
}

function engineSettings(
  {
    id: _id,
    name: _name,
    region: _region,
    engine: _engine,
    workerUrl: _url,
    ...dataCenter
  }: DataCenterConfig,
  config: Config,
) {
  const { scheduleTimeout, startTimeout, lostNodeTimeout, runtime, ...fields } = dataCenter;
  const kubeconfig = dataCenter.kubeconfig ?? (config.kubeconfig || undefined);
  return {
    ...fields,
    namespace: dataCenter.namespace ?? config.kubernetes.namespace,
    ...(kubeconfig !== undefined && { kubeconfig }),
    ...(runtime !== undefined && { runtimeClass: runtime }),
    ...(lostNodeTimeout !== undefined && { lostNodeSeconds: lostNodeTimeout }),
    ...(scheduleTimeout !== undefined && { scheduleTimeoutMs: scheduleTimeout * MS_PER_SECOND }),
    ...(startTimeout !== undefined && { startTimeoutMs: startTimeout * MS_PER_SECOND }),
  };
}
