import { connect } from '../client.ts';
import { command } from '../command.ts';
import { serverOptions } from '../local-server.ts';
import { findVolume, readSize, volumePath, volumeWord } from '../volumes/volumes.ts';
import type { VolumeView } from '../volumes/volumes.ts';

export const volumeResize = command({
  name: 'volume resize',
  summary: 'Make a network volume larger, also while it is in use.',
  words: { VOLUME: volumeWord, SIZE: 'The new size in GB. A volume never shrinks.' },
  options: serverOptions,
  async run(call) {
    const size = readSize(call.words.SIZE);
    const client = await connect(call);
    const volume = await findVolume(client, call.words.VOLUME);
    call.output.record({ ...(await client.patch<VolumeView>(volumePath(volume), { size })) });
  },
});
