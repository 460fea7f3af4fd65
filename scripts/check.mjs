// `npm run check`: types and lint, layers and import cycles, format, side by side. The output of a step is printed as a
// whole once it has ended, and every step runs even if another one failed.
import { spawn } from 'node:child_process';

const STEPS = [
  // One pass over everything: it also reports what tsc would (.oxlintrc.json).
  { name: 'types and lint', argv: ['oxlint'] },
  {
    name: 'layers and import cycles',
    argv: ['depcruise', 'packages', '--config', '.dependency-cruiser.cjs'],
  },
  { name: 'format', argv: ['biome', 'format', '.'] },
];

const outcomes = await Promise.all(STEPS.map(run));
process.exit(outcomes.every(Boolean) ? 0 : 1);

/** @param {{ name: string, argv: string[] }} step @returns {Promise<boolean>} */
function run({ name, argv: [command = '', ...words] }) {
  const began = performance.now();
  const child = spawn(command, words, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (/** @type {string} */ text) => (output += text));
  return new Promise((done, failed) => {
    child.on('error', failed);
    child.on('close', (code) => {
      const seconds = ((performance.now() - began) / 1000).toFixed(0);
      process.stdout.write(`${output}${code === 0 ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)\n`);
      done(code === 0);
    });
  });
}
