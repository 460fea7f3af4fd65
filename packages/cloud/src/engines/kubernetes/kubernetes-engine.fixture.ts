import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { BerthServiceAccount } from '../../../../testing/src/kubernetes/service-account.ts';
import type { InstanceEngine } from '../engine.ts';
import { KubernetesEngine } from './kubernetes-engine.ts';
import type { KubernetesEngineOptions } from './kubernetes-options.ts';

/** The kubeconfig of the cluster of a test run. */
const TEST_KUBECONFIG = 'BERTH_TEST_KUBECONFIG';

/** Each folder is an installation of its own, in a namespace of its own. */
export function testEngineOptions(data: string): KubernetesEngineOptions {
  const kubeconfig = process.env[TEST_KUBECONFIG];
  if (kubeconfig === undefined) throw new Error(`${TEST_KUBECONFIG} is not set`);
  const installation = createHash('sha256').update(data).digest('hex').slice(0, 12);
  return {
    dataCenterId: 'K8S-1',
    installation,
    data,
    kubeconfig,
    namespace: `berth-test-${installation}`,
    // Test machines have few cores.
    cpuRequestRatio: 0.01,
    sharedFolders: true,
    scheduleTimeoutMs: 20_000,
  };
}

/** With the rights of deploy/kubernetes/role.yaml, and no more. */
export async function openEngine(data: string): Promise<InstanceEngine> {
  const options = testEngineOptions(data);
  const { kubeconfig = '', namespace = '' } = options;
  const own = join(data, 'kubeconfig');
  if (!existsSync(own)) await new BerthServiceAccount(kubeconfig, namespace).create(data);
  return new KubernetesEngine({ ...options, kubeconfig: own });
}
