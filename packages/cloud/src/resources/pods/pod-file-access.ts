import type { InstanceEngine } from '../../engines/engine.ts';
import type { InstanceFiles } from '../../engines/instance-files.ts';
import { BerthError } from '../../support/errors.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';

/** File access to a running pod. A stopped pod has only its volumes, which are reached in other ways. */
export function podFiles(
  { id, status, dataCenterId }: Pod,
  engines: ReadonlyMap<string, InstanceEngine>,
): InstanceFiles {
  if (status !== 'RUNNING')
    throw new BerthError(
      'state',
      `pod ${id} is not running: start it to copy files; files of a network volume can be copied at ` +
        'any time with "berth volume cp"',
    );
  const files = engines.get(dataCenterId)?.files;
  if (files === undefined)
    throw new BerthError('state', `files cannot be copied into pods of data center ${dataCenterId}`);
  return files;
}
