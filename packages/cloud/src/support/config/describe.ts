import { knobList } from './knobs.ts';
import { wrap } from './wrap.ts';

const WIDTH = 98;

/** A configuration file with every knob at its default and a comment on each. Reading it changes nothing. */
export function describeConfig(): string {
  const lines = [
    '# The configuration of Berth. Start with: berth up --config FILE',
    '# A flag wins over an environment variable, and a variable over this file.',
  ];
  let open: string[] = [];
  for (const { path, knob, variable } of knobList) {
    const sections = path.split('.');
    const name = sections.pop() ?? path;
    lines.push('');
    for (const [depth, section] of sections.entries())
      if (open[depth] !== section) lines.push(`${'  '.repeat(depth)}${section}:`);
    open = sections;
    const indent = '  '.repeat(sections.length);
    const comment = (text: string): void =>
      void lines.push(...wrap(text, WIDTH - indent.length - 2).map((line) => `${indent}# ${line}`));
    comment(knob.description);
    comment(`Allowed: ${knob.kind.allowed}.`);
    if (variable !== undefined) comment(`Variable: ${variable}.${knob.flag ? ` Flag: --${path}.` : ''}`);
    if (knob.example !== undefined)
      lines.push(
        `${indent}# For example:`,
        ...knob.example.split('\n').map((line) => `${indent}#   ${line}`),
      );
    lines.push(`${indent}${name}: ${knob.kind.toYaml(knob.default)}`);
  }
  return `${lines.join('\n')}\n`;
}
