import { once } from 'node:events';
import { VOLUME_SERVER_PORT } from '../../domain/volume-server-protocol.ts';
import { CliError } from '../cli.errors.ts';
import { command } from '../command-definition.ts';

const TOKEN_VARIABLE = 'BERTH_VOLUME_TOKEN';

export const volumeServe = command({
  name: 'volume serve',
  summary: 'Serve the files of a mounted volume to Berth servers (Berth starts it on Kubernetes).',
  details: `It needs a token in ${TOKEN_VARIABLE}.`,
  words: { FOLDER: 'Where the volume is mounted.' },
  options: {
    port: { kind: 'text', value: 'PORT', description: `Default: ${VOLUME_SERVER_PORT}.` },
    idle: {
      kind: 'text',
      value: 'SECONDS',
      description: 'Idle timeout in seconds; default: 300.',
    },
  },
  survivesClosedStdout: true,
  async run({ words, options, env }) {
    const token = env[TOKEN_VARIABLE] ?? '';
    if (token === '') throw new CliError(`set ${TOKEN_VARIABLE} to the token that callers must send`);
    const [port, idle] = [Number(options.port ?? VOLUME_SERVER_PORT), Number(options.idle ?? 300)];
    if (!Number.isInteger(port) || !(idle > 0)) throw new CliError('--port and --idle are numbers');
    const { createVolumeServer } = await import('../../http/volume-server/volume-server.ts');
    const { VolumeServerCalls } = await import('../../resources/volumes/remote/volume-server-calls.ts');
    const server = createVolumeServer({
      calls: new VolumeServerCalls(words.FOLDER),
      token,
      idleMs: idle * 1000,
      onIdle: () => server.close(),
    });
    server.listen(port);
    const stop = (): void => {
      server.close();
      server.closeIdleConnections();
    };
    process.once('SIGTERM', stop).once('SIGINT', stop);
    await once(server, 'close');
  },
});
