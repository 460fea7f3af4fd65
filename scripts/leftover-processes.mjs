// A process that a test leaves behind keeps the output of its test file open, and the test runner waits for the
// end of that output for ever. Such processes are ended here: all that carry the mark of a test process
// (mark-test-process.mjs) which is gone.
import { existsSync, readdirSync, readFileSync } from 'node:fs';

const LOOK_EVERY_MS = 2_000;
/** A test's own cleanup may go on after its process, such as a shell that waits for a daemon. */
const GRACE_MS = 10_000;

/**
 * Looks for leftovers until it is stopped.
 * @param {(line: string) => void} say is told of each process that was ended
 * @param {{ lookEveryMs?: number, graceMs?: number }} [times]
 * @returns {() => void} stop
 */
export function endLeftoverProcesses(say, { lookEveryMs = LOOK_EVERY_MS, graceMs = GRACE_MS } = {}) {
  /** When a test process was first seen to be gone, by its pid. @type {Map<number, number>} */
  const goneSince = new Map();
  const timer = setInterval(() => {
    const now = performance.now();
    for (const { pid, testProcess } of markedProcesses()) {
      if (pid === testProcess || existsSync(`/proc/${testProcess}`)) continue;
      const since = goneSince.get(testProcess) ?? now;
      goneSince.set(testProcess, since);
      if (now - since < graceMs) continue;
      const command = commandLine(pid);
      try {
        process.kill(pid, 'SIGKILL');
        say(`a test left a process behind, which was ended: ${command}\n`);
      } catch {
        // It has ended by itself.
      }
    }
  }, lookEveryMs);
  timer.unref();
  return () => clearInterval(timer);
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

/** @param {number} pid */
function commandLine(pid) {
  return read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim().slice(0, 200);
}

/** @param {string} file */
function read(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
