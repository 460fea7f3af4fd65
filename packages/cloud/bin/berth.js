// The compile cache keeps the stripped and compiled code of earlier starts: it halves the time to the first answer.
import { existsSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { resolveSource } from './resolve-source.js';

const [major = 0] = process.versions.node.split('.').map(Number);
if (major < 24) {
  process.stderr.write(
    `berth needs Node 24 or newer and found ${process.version}; run "npm install" in the project, which brings one\n`,
  );
  process.exit(1);
}
nodeModule.enableCompileCache();
// A clone runs the TypeScript sources as they are; the published package has only what was compiled from them.
const source = new URL('../src/cli/main.ts', import.meta.url);
const isClone = existsSync(source);
if (isClone) nodeModule.registerHooks({ resolve: resolveSource });
const program = isClone ? source : new URL('../dist/cli/main.js', import.meta.url);
/** @type {typeof import('../src/cli/main.ts')} */
const { main } = await import(program.href);
await main(process.argv.slice(2));
