// How long each test file takes: which one starts first follows from it, and the slowest are printed at the end of a run.
// test-durations.json has what was measured for those that take longest. What the last run on this machine measured
// goes before it.
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const MEASURED = fileURLToPath(new URL('test-durations.json', import.meta.url));
const LAST_RUN = fileURLToPath(new URL('../node_modules/.cache/test-durations.json', import.meta.url));
/** What a file takes that was not measured, in seconds, by its first match. */
const GUESSES = /** @type {const} */ ([
  [/^tests\/(?:docs|console|deploy)\/|kubernetes/, 60],
  [/docker/, 40],
  [/^tests\//, 5],
  [/\.integration\./, 3],
]);
const SHOWN = 25;
const TICKS_PER_SECOND = 100;

/**
 * @typedef {{ seconds: number, cpuSeconds?: number }} Duration `seconds` by the clock; `cpuSeconds` of the file's process
 *   and of all processes that it has started and waited for
 */

/** Longest first, so that no processor is idle at the end of a run. @param {string[]} files */
export function longestFirst(files) {
  const known = { ...read(MEASURED), ...read(LAST_RUN) };
  const expected = (/** @type {string} */ file) =>
    known[file] ?? GUESSES.find(([pattern]) => pattern.test(file))?.[1] ?? 1;
  return files.toSorted((one, other) => expected(other) - expected(one) || (one < other ? -1 : 1));
}

export class TestDurations {
  /** @type {Map<string, Duration>} */
  #files = new Map();
  #usageFile;

  /** @param {string} usageFile where the processes of test files write what they have used */
  constructor(usageFile) {
    this.#usageFile = usageFile;
  }

  /** @param {{ type: string, data: any }} event of the test runner */
  observe({ type, data }) {
    if (type !== 'test:summary' || data.file === undefined) return;
    this.#files.set(relative(process.cwd(), data.file), { seconds: data.duration_ms / 1000 });
  }

  /** Keeps them for the next run, and returns the slowest as a table. */
  end() {
    for (const line of existsSync(this.#usageFile) ? readFileSync(this.#usageFile, 'utf8').split('\n') : []) {
      const [file = '', cpuSeconds] = line.split('\t');
      const duration = this.#files.get(relative(process.cwd(), file));
      if (duration !== undefined) duration.cpuSeconds = Number(cpuSeconds);
    }
    mkdirSync(dirname(LAST_RUN), { recursive: true });
    const seconds = Object.fromEntries([...this.#files].map(([file, one]) => [file, round(one.seconds)]));
    writeFileSync(LAST_RUN, JSON.stringify({ ...read(LAST_RUN), ...seconds }));
    return slowestFiles(this.#files);
  }
}

/** @param {ReadonlyMap<string, Duration>} files */
export function slowestFiles(files) {
  const all = [...files].sort(([, one], [, other]) => other.seconds - one.seconds);
  const total = all.reduce((sum, [, { cpuSeconds = 0 }]) => sum + cpuSeconds, 0);
  const lines = all
    .slice(0, SHOWN)
    .map(
      ([file, { seconds, cpuSeconds }]) =>
        `${column(seconds)}${cpuSeconds === undefined ? '         ' : column(cpuSeconds)}  ${file}`,
    );
  return (
    `\nthe slowest of ${all.length} files, which took ${total.toFixed(0)} s of processor time:\n` +
    `  seconds      cpu  file\n${lines.join('\n')}\n`
  );
}

/** Called in the process of a test file, at its end. @param {string} usageFile @param {string} testFile */
export function writeProcessorTime(usageFile, testFile) {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  // After the name: state, and then numbers; the 12th to the 15th of them are times of this process and of its children.
  const numbers = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = numbers.slice(11, 15).reduce((sum, number) => sum + Number(number), 0);
  appendFileSync(usageFile, `${testFile}\t${ticks / TICKS_PER_SECOND}\n`);
}

/** @param {number} seconds */
const column = (seconds) => seconds.toFixed(1).padStart(9);

/** @param {number} seconds */
const round = (seconds) => Math.round(seconds * 10) / 10;

/** @param {string} file @returns {Record<string, number>} */
function read(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return {};
  }
}
