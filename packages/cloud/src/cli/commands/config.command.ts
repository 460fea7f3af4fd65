import { configFileTemplate } from '../../support/config/config-file-template.ts';
import { loadConfig } from '../../support/config/load-config.ts';
import { command } from '../command-definition.ts';

export const config = command({
  name: 'config',
  summary: 'Print a configuration file with every setting at its default.',
  details:
    'Save it, change the settings that should differ, and start with "berth up --config FILE". It is ' +
    'always YAML, even if the output is not a terminal.',
  options: { json: { kind: 'switch', description: 'The defaults alone, in JSON.' } },
  async run({ options, output }) {
    if (options.json) output.printRecord((await loadConfig({})).config);
    else output.printText(configFileTemplate());
  },
});
