import type { InstanceEngine } from '../../engine.ts';
import { openTenantEngine } from './tenant-test-engine.ts';

/** Without namespaces. */
export function openEngine(data: string): Promise<InstanceEngine> {
  return openTenantEngine(data, 'users');
}
