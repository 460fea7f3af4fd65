import { connect } from '../client.ts';
import { command } from '../command.ts';
import { serverOptions } from '../local-server.ts';
import { findVolume, volumeWord } from '../volumes/volumes.ts';

export const volumeGet = command({
  name: 'volume get',
  summary: 'Show a network volume: its size, what is used of it, where it lies.',
  words: { VOLUME: volumeWord },
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const volume = await findVolume(client, call.words.VOLUME);
    call.output.record(
      { ...volume },
      `Its files over S3: ${client.url}/s3, bucket ${volume.id}, region ${volume.dataCenter}`,
    );
  },
});
