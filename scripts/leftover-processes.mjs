// Keeps a run of the tests from waiting for ever. Node's runner waits for the end of a test file's process and of its
// output, whatever the time limit of the file:
//   - a process that a test leaves behind keeps the output open. All that carry the mark of a test process
//     (mark-test-process.mjs) which is gone are ended;
//   - a child that a failed test did not stop keeps the test process itself alive. It is ended past its limit.
import { existsSync, readdirSync, readFileSync } from 'node:fs';

const CHECK_INTERVAL_MS = 2_000;
/** A test's own cleanup may continue after its process, such as a shell that waits for a daemon. */
const GRACE_MS = 10_000;
const TEST_FILE = /\.test\.[mc]?[jt]s\0?$/;

/**
 * Looks for such processes until it is stopped.
 * @param {(line: string) => void} say is called for each process that was ended
 * @param {{ checkIntervalMs?: number, graceMs?: number, fileLimitMs?: number }} [times]
 * @returns {() => void} stop
 */
export function endLeftoverProcesses(
  say,
  { checkIntervalMs = CHECK_INTERVAL_MS, graceMs = GRACE_MS, fileLimitMs = Infinity } = {},
) {
  /** When a test process was first seen to be gone, by its pid. @type {Map<number, number>} */
  const goneSince = new Map();
  /** When a test process was first seen, by its pid. @type {Map<number, number>} */
  const seenSince = new Map();
  const timer = setInterval(() => {
    const now = performance.now();
    const running = testProcesses();
    // Numbers of processes come again in a long run.
    for (const pid of seenSince.keys()) if (!running.includes(pid)) seenSince.delete(pid);
    for (const pid of goneSince.keys()) if (existsSync(`/proc/${pid}`)) goneSince.delete(pid);
    for (const pid of running) {
      const since = seenSince.get(pid) ?? now;
      seenSince.set(pid, since);
      if (now - since > fileLimitMs)
        end(pid, 'a test file did not end in time, and its process was ended', say);
    }
    for (const { pid, testProcess } of markedProcesses()) {
      if (pid === testProcess || existsSync(`/proc/${testProcess}`)) continue;
      const since = goneSince.get(testProcess) ?? now;
      goneSince.set(testProcess, since);
      if (now - since >= graceMs) end(pid, 'a test left a process behind, which was ended', say);
    }
  }, checkIntervalMs);
  timer.unref();
  return () => clearInterval(timer);
}

/**
 * @param {number} pid
 * @param {string} why
 * @param {(line: string) => void} say
 */
function end(pid, why, say) {
  const command = read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim().slice(-200);
  try {
    process.kill(pid, 'SIGKILL');
    say(`${why}: ${command}\n`);
  } catch {
    // It has ended by itself.
  }
}

/** The processes of test files that this one has started. */
function testProcesses() {
  return read(`/proc/${process.pid}/task/${process.pid}/children`)
    .split(' ')
    .filter((pid) => pid !== '' && TEST_FILE.test(read(`/proc/${pid}/cmdline`)))
    .map(Number);
}

function markedProcesses() {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const mark = /(?:^|\0)BERTH_TEST_PROCESS=(\d+)(?:\0|$)/.exec(read(`/proc/${name}/environ`));
      return mark === null ? [] : [{ pid: Number(name), testProcess: Number(mark[1]) }];
    });
}

/** @param {string} file */
function read(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
