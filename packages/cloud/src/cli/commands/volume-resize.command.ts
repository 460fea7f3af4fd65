import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import { findVolume, parseSizeInGb, volumePath, volumeArgumentHelp } from '../volumes/volume-client.ts';
import type { VolumeView } from '../volumes/volume-client.ts';

export const volumeResize = command({
  name: 'volume resize',
  summary: 'Make a network volume larger, also while it is in use.',
  words: { VOLUME: volumeArgumentHelp, SIZE: 'The new size in GB. A volume never shrinks.' },
  options: serverOptions,
  async run(call) {
    const size = parseSizeInGb(call.words.SIZE);
    const client = await connect(call);
    const volume = await findVolume(client, call.words.VOLUME);
    call.output.printRecord({ ...(await client.patch<VolumeView>(volumePath(volume), { size })) });
  },
});
