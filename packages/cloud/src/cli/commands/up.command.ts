import { configFlags } from '../../support/config/config-from-flags.ts';
import { loadConfig } from '../../support/config/load-config.ts';
import { command, type Option } from '../command-definition.ts';

const options: Record<string, Option> = Object.fromEntries(
  Object.entries(configFlags).map(([flag, words]) => [flag, { kind: 'text', ...words }]),
);

export const up = command({
  name: 'up',
  summary: 'Start the server and serve until stopped.',
  details:
    'Everything else is set by environment variables or the configuration file: see "berth config". ' +
    'With --json, the log is JSON.',
  options,
  survivesClosedStdout: true,
  async run({ options: given, env }) {
    const argv = Object.keys(configFlags).flatMap((flag) =>
      typeof given[flag] === 'string' ? [`--${flag}=${given[flag]}`] : [],
    );
    const { config, warnings } = await loadConfig({ argv, env });
    const { runServer } = await import('../../app/run-server.ts');
    await runServer({
      config: given.json ? { ...config, log: { ...config.log, format: 'json' } } : config,
      warnings,
    });
  },
});
