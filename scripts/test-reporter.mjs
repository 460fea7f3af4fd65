// Prints a line for each file as it ends, every failure when it happens and in full at the end, and `N
// passed, N failed` as the last line.
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, relative } from 'node:path';
import { inspect } from 'node:util';

/**
 * @param {AsyncIterable<{ type: string, data: any }>} events
 * @param {() => string} [closing] what is printed before the last line
 */
export default async function* report(events, closing = () => '') {
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  const failures = [];
  const failedFiles = new Set();
  for await (const { type, data } of events) {
    if (type === 'test:stdout' || type === 'test:stderr') yield data.message;
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const file = data.file === undefined ? '' : relative(process.cwd(), data.file);
    const seconds = (data.details.duration_ms / 1000).toFixed(2);
    if (data.nesting === 0)
      yield `${type === 'test:pass' ? 'ok  ' : 'FAIL'} ${file}: ${data.name} (${seconds} s)\n`;
    // A suite fails with its tests, which are reported already, or by itself, where a hook failed.
    if (
      data.details.type === 'suite' &&
      (type === 'test:pass' || data.details.error?.failureType === 'subtestsFailed')
    )
      continue;
    if (data.skip !== undefined) {
      skipped += 1;
      yield `skip ${file}: ${data.name}: ${data.skip === true ? '' : data.skip}\n`;
    } else if (type === 'test:pass') passed += 1;
    else {
      failed += 1;
      for (const one of testFilesToRerun(file)) failedFiles.add(one);
      const cause = data.details.error?.cause ?? data.details.error;
      yield `FAILED ${file}: ${data.name}: ${textOf(cause?.message ?? cause)
        .split('\n', 4)
        .join(' ')
        .slice(0, 400)}\n`;
      failures.push(`\nFAILED ${file}: ${data.name}\n${textOf(cause?.stack ?? cause)}\n`);
    }
  }
  for (const failure of failures) yield failure;
  const list = process.env['BERTH_TEST_FAILED'];
  if (list !== undefined) writeFileSync(list, [...failedFiles].join(' '));
  yield closing();
  yield `\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`;
}

/** A test may throw anything, also what cannot be turned into text. @param {unknown} thrown */
function textOf(thrown) {
  return typeof thrown === 'string' ? thrown : inspect(thrown);
}

/**
 * What to run again: the file; where that is a suite, whatever file uses it, if only through another suite;
 * where a client could not be installed, all of that client.
 * @param {string} file
 * @returns {string[]}
 */
function testFilesToRerun(file) {
  if (!file.endsWith('.suite.ts')) return [file.endsWith('.test.ts') ? file : `${dirname(file)}/`];
  const users = globSync(['packages/*/src/**/*.{test,suite}.ts', 'tests/**/*.{test,suite}.ts']).filter(
    (one) => readFileSync(one, 'utf8').includes(`/${basename(file)}'`),
  );
  return users.flatMap(testFilesToRerun);
}
