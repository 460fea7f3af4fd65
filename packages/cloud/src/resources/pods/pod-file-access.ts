import type { InstanceEngine } from '../../engines/engine.ts';
import type { InstanceFiles } from '../../engines/instance-files.ts';
import { BerthError } from '../../support/errors.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';

/** The files of a pod that runs: one that is stopped has nothing but its volumes, and those are reached in other ways. */
export function podFiles(
  { id, status, dataCenterId }: Pod,
  engines: ReadonlyMap<string, InstanceEngine>,
): InstanceFiles {
  if (status !== 'RUNNING')
    throw new BerthError(
      'state',
      `pod ${id} does not run: start it to copy files; those of a network volume can be copied at any time with "berth volume cp"`,
    );
  const files = engines.get(dataCenterId)?.files;
  if (files === undefined)
    throw new BerthError('state', `files cannot be copied into pods of data center ${dataCenterId}`);
  return files;
}
