import { FILE_VARIABLE } from './config-from-environment.ts';
import { settingList } from './settings.ts';

/** The text of docs/configuration.md. */
export function configurationPage(): string {
  return `# Configuration

<!-- Written by scripts/write-configuration-page.ts from the list of settings; change it there. -->

Berth runs without any configuration. Each setting is read from the first of these places that has a value:

1. a flag of \`berth up\`: ${settingList
    .filter(({ setting }) => setting.flag)
    .map(({ path }) => `\`--${path}\``)
    .join(', ')}, and \`--config\` for the file;
2. an environment variable, named beside each setting below; an empty one counts as not set;
3. a YAML file, named by \`--config\` or \`${FILE_VARIABLE}\`;
4. the default.

\`berth config\` prints a configuration file with all defaults and comments. Berth does not start with an invalid
value, an unknown flag or an unknown key in the file: a message names the setting, where it was found and which values
are allowed. An unknown variable that starts with \`BERTH_\` only causes a warning in the log. Secret values are never
shown.

| setting | variable | default |
|---|---|---|
${settingList.map(tableRow).join('\n')}

${settingList.map(section).join('\n')}`;
}

function tableRow({ path, setting, variable }: (typeof settingList)[number]): string {
  const from = variable === undefined ? 'file only' : `\`${variable}\``;
  return `| [\`${path}\`](#${anchor(path)}) | ${from} | \`${setting.type.toYaml(setting.default)}\` |`;
}

function section({ path, setting, variable }: (typeof settingList)[number]): string {
  const facts = [
    `- Allowed: ${setting.type.allowed}`,
    `- Default: \`${setting.type.toYaml(setting.default)}\``,
    variable === undefined
      ? '- From the file only'
      : `- Variable: \`${variable}\`${setting.flag ? `, flag: \`--${path}\`` : ''}`,
    ...(setting.secret ? ['- Secret: never shown'] : []),
  ];
  const example = setting.example === undefined ? '' : `\n\`\`\`yaml\n${setting.example}\n\`\`\`\n`;
  return `## ${path}\n\n${setting.description}\n\n${facts.join('\n')}\n${example}`;
}

/** How Markdown viewers name a heading: in lower case, without dots. */
function anchor(path: string): string {
  return path.toLowerCase().replaceAll('.', '');
}
