// `npm run check`: types, lint, layers and import cycles, format. What takes longest runs beside all the rest; the
// output of a step is printed as a whole once it has ended, and every step runs even if another one failed.
import { spawn } from 'node:child_process';

/** Less garbage collection: a program of 2,000 files outgrows the usual space for young objects at once. */
const NODE = ['node', '--max-semi-space-size=128'];
const SOURCES = [...NODE, 'scripts/check-sources.mjs'];
const SIDE_BY_SIDE = [
  [{ name: 'types and lint', argv: [...SOURCES, 'tsconfig.json', '--ignore', 'packages/console/**', '.'] }],
  [
    {
      name: 'types and lint of the console',
      argv: [...SOURCES, 'packages/console/tsconfig.json', 'packages/console'],
    },
    {
      name: 'layers and import cycles',
      argv: ['depcruise', 'packages', '--config', '.dependency-cruiser.cjs'],
    },
    { name: 'format', argv: ['biome', 'format', '.'] },
  ],
];

const outcomes = await Promise.all(
  SIDE_BY_SIDE.map(async (steps) => {
    let passed = true;
    for (const step of steps) passed = (await run(step)) && passed;
    return passed;
  }),
);
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
