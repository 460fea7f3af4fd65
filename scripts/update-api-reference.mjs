// Replaces the bundled API reference page by another version of @scalar/api-reference:
//   node scripts/update-api-reference.mjs VERSION
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const version = process.argv[2];
if (version === undefined || !/^\d+\.\d+\.\d+$/.test(version)) {
  process.stderr.write('usage: node scripts/update-api-reference.mjs VERSION (for example 1.72.1)\n');
  process.exit(2);
}

const target = new URL('../packages/cloud/assets/api-reference/', import.meta.url);
const scratch = mkdtempSync(join(tmpdir(), 'api-reference-'));
try {
  const options = { cwd: scratch, encoding: /** @type {const} */ ('utf8') };
  const packed = execFileSync('npm', ['pack', '--silent', `@scalar/api-reference@${version}`], options);
  execFileSync('tar', ['xzf', packed.trim().split('\n').at(-1) ?? ''], options);
  const bundle = readFileSync(join(scratch, 'package/dist/browser/standalone.js'));
  writeFileSync(new URL('scalar.js.gz', target), gzipSync(bundle, { level: 9 }));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

const readme = new URL('README.md', target);
writeFileSync(readme, readFileSync(readme, 'utf8').replace(/\) \d+\.\d+\.\d+ \(MIT/, `) ${version} (MIT`));
