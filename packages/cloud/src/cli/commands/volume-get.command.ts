import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import { findVolume, volumeArgumentHelp } from '../volumes/volume-client.ts';

export const volumeGet = command({
  name: 'volume get',
  summary: 'Show a network volume: its size, usage and data center.',
  words: { VOLUME: volumeArgumentHelp },
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const volume = await findVolume(client, call.words.VOLUME);
    call.output.printRecord(
      { ...volume },
      `Its files over S3: ${client.url}/s3, bucket ${volume.id}, region ${volume.dataCenter}`,
    );
  },
});
