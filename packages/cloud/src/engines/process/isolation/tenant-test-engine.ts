import type { InstanceEngine } from '../../engine.ts';
import type { Instance, InstanceHandle, InstanceSpec } from '../../instance.ts';
import { ProcessEngine } from '../process-engine.ts';
import type { IsolationSetting } from './isolation.ts';
import { testEngineOptions } from '../process-test-engine.ts';

/** Runs every instance for an account other than root. Its label is hidden from the tests of all engines. */
class TenantEngine extends ProcessEngine {
  override start(spec: InstanceSpec): Promise<InstanceHandle> {
    return super.start({ ...spec, labels: { ...spec.labels, account: 'tenant' } });
  }

  override async adopt(handle: InstanceHandle): Promise<Instance | undefined> {
    const found = await super.adopt(handle);
    return found === undefined ? undefined : withoutAccount(found);
  }

  override async list(): Promise<Instance[]> {
    return (await super.list()).map(withoutAccount);
  }
}

function withoutAccount(instance: Instance): Instance {
  const { account, ...labels } = instance.labels;
  return { ...instance, labels };
}

export function openTenantEngine(data: string, isolation: IsolationSetting): Promise<InstanceEngine> {
  return Promise.resolve(new TenantEngine({ data, isolation, ...testEngineOptions }));
}

/** With namespaces, where this machine can. */
export function openEngine(data: string): Promise<InstanceEngine> {
  return openTenantEngine(data, 'auto');
}
