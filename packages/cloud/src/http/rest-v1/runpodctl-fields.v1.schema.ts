import { list, stringEnum, text } from '../rest/json-schema.ts';
import { FLASHBOOT_MODES } from '../../domain/records.ts';

/**
 * Keys that a client sends or reads and that the interface itself does not have. Each stands here
 * with the client that needs it; `tests/runpodctl-wire.test.ts` speaks as it does.
 */

/** runpodctl sends these with a new pod. */
export const runpodctlPodCreateFields = {
  minCudaVersion: text({ description: 'Such as 12.8' }),
  dockerArgs: text({ description: 'The command as one text; dockerEntrypoint and dockerStartCmd go first' }),
};

/** runpodctl reads a pod's image under the name that it is ordered with. */
export const runpodctlPodFields = { imageName: text({ description: 'The same as image' }) };

/**
 * runpodctl reads an endpoint here and writes all of it back over GraphQL: what it did not find would come
 * back empty.
 */
export const runpodctlEndpointFields = {
  gpuIds: text({ description: 'The same types as pools, with a minus before each type that is left out' }),
  locations: text(),
  flashBootType: stringEnum(FLASHBOOT_MODES),
  modelReferences: list(text()),
};
