import { settingList } from './settings.ts';
import { wrapText } from './wrap-text.ts';

const WIDTH = 98;

/**
 * A configuration file with every setting at its default and a comment on each. Reading it changes nothing.
 */
export function configFileTemplate(): string {
  const lines = [
    '# The configuration of Berth. Start with: berth up --config FILE',
    '# A flag wins over an environment variable, and a variable over this file.',
  ];
  let open: string[] = [];
  for (const { path, setting, variable } of settingList) {
    const sections = path.split('.');
    const name = sections.pop() ?? path;
    lines.push('');
    for (const [depth, section] of sections.entries())
      if (open[depth] !== section) lines.push(`${'  '.repeat(depth)}${section}:`);
    open = sections;
    const indent = '  '.repeat(sections.length);
    const comment = (text: string): void =>
      void lines.push(...wrapText(text, WIDTH - indent.length - 2).map((line) => `${indent}# ${line}`));
    comment(setting.description);
    comment(`Allowed: ${setting.type.allowed}.`);
    if (variable !== undefined) comment(`Variable: ${variable}.${setting.flag ? ` Flag: --${path}.` : ''}`);
    if (setting.example !== undefined)
      lines.push(
        `${indent}# For example:`,
        ...setting.example.split('\n').map((line) => `${indent}#   ${line}`),
      );
    lines.push(`${indent}${name}: ${setting.type.toYaml(setting.default)}`);
  }
  return `${lines.join('\n')}\n`;
}
