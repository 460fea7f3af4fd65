// The compile cache keeps the stripped and compiled code of earlier starts: it halves the time to the first answer.
import { enableCompileCache } from 'node:module';

const [major = 0] = process.versions.node.split('.').map(Number);
if (major < 24) {
  process.stderr.write(
    `berth needs Node 24 or newer and found ${process.version}; run "npm install" in the project, which brings one\n`,
  );
  process.exit(1);
}
enableCompileCache();
const { main } = await import('../src/cli/main.ts');
await main(process.argv.slice(2));
