import { execFileSync } from 'node:child_process';
import { closeSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { BenchContext } from './support/bench-context.ts';
import type { BerthProcess } from './support/berth-process.ts';
import { createEndpoint, startBerth } from './support/berth-process.ts';
import type { CleanupScope } from './support/cleanup-scope.ts';
import { withCleanup } from './support/cleanup-scope.ts';
import type { HttpResponse } from './support/http-connection.ts';
import { HttpConnection } from './support/http-connection.ts';
import { JOB_BODY } from './support/job-body.ts';
import { quantile } from './support/statistics.ts';

const DISK_MB = 256;
const CLIENTS = 8;
const WARM_JOBS = 2_000;
const FILL_INTERVAL_MS = 20;
const DELETE_INTERVAL_MS = 1_000;
/** A client that was refused asks again this much later. */
const RETRY_MS = 5;
const BARS = { recoveryMs: 1_000 };

/**
 * A disk that stays full under load, with a crash in the middle: what is lost, and how soon service is back.
 */
export async function fullDisk(bench: BenchContext): Promise<void> {
  const { report } = bench;
  const seconds = bench.minutes * 60;
  report.part(
    'full-disk',
    `${CLIENTS} clients send jobs, and for ${seconds} s something else takes every byte of the disk`,
  );
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    report.missingTool('root', 'a small disk is mounted', 'full-disk');
    return;
  }
  await withCleanup(async (scope) => {
    const run = await FullDiskRun.start(scope);
    await run.warmUp();
    await run.fillFor(seconds);
    const recoveryMs = await run.freeSpace();
    const lost = await run.countLost();
    const { acknowledged, deletes, refusals, restartMs, others } = run;
    const failed = deletes.filter(({ status }) => status !== 204);
    const milliseconds = (times: number[], at: number): string =>
      times.length === 0 ? 'none' : `${quantile(times, at).toFixed(1)} ms`;
    const deleteTimes = deletes.map(({ took }) => took);
    report.print(
      `${acknowledged.length} jobs acknowledged, ${run.acknowledgedWhileFull} of them on the full ` +
        `disk; ${refusals.length} refused: p50 ${milliseconds(refusals, 0.5)}, p99 ` +
        `${milliseconds(refusals, 0.99)}, longest ${milliseconds(refusals, 1)}`,
    );
    report.print(
      `${deletes.length} endpoints deleted on the full disk: p50 ${milliseconds(deleteTimes, 0.5)}, ` +
        `longest ${milliseconds(deleteTimes, 1)}`,
    );
    report.print(`${run.reserveBytes.toLocaleString('en-US')} bytes of the reserve were left`);
    report.print(`other answers: ${others.size === 0 ? 'none' : [...others].join(', ')}`);
    report.bar({
      part: 'full-disk',
      what: 'acknowledged jobs that are lost',
      bar: '0',
      measured: `${lost} of ${acknowledged.length}`,
      met: lost === 0,
    });
    report.bar({
      part: 'full-disk',
      what: 'deletes refused while the disk is full',
      bar: '0',
      measured: `${failed.length} of ${deletes.length}${failed.length === 0 ? '' : ` (${failed[0]?.text})`}`,
      met: deletes.length > 0 && failed.length === 0,
    });
    report.bar({
      part: 'full-disk',
      what: 'restart on the full disk, after a kill',
      bar: 'succeeds',
      measured: `${restartMs.toFixed(0)} ms`,
      met: true,
    });
    report.bar({
      part: 'full-disk',
      what: 'time until a job is accepted again',
      bar: `<= ${BARS.recoveryMs} ms`,
      measured: `${recoveryMs.toFixed(0)} ms`,
      met: recoveryMs <= BARS.recoveryMs,
    });
  });
}

class FullDiskRun {
  readonly acknowledged: string[] = [];
  readonly deletes: { status: number; took: number; text: string }[] = [];
  /** How long each refusal took. */
  readonly refusals: number[] = [];
  /** Answers that are neither. */
  readonly others = new Set<string>();
  acknowledgedWhileFull = 0;
  /** When the space came back. */
  reserveBytes = 0;
  restartMs = 0;
  readonly #data: string;
  readonly #ballast: string;
  #berth: BerthProcess;
  #endpointId = '';
  #isFull = false;
  #isOver = false;
  #loads: Promise<void>[] = [];

  private constructor(data: string, berth: BerthProcess) {
    this.#data = data;
    this.#ballast = join(data, 'ballast');
    this.#berth = berth;
  }

  static async start(scope: CleanupScope): Promise<FullDiskRun> {
    const data = scope.folder('full-disk');
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m`, 'tmpfs', data]);
    scope.defer(() => void execFileSync('umount', [data]));
    const run = new FullDiskRun(data, await startBerth({ data, database: '' }));
    scope.defer(() => run.#end());
    return run;
  }

  async warmUp(): Promise<void> {
    this.#endpointId = await createEndpoint(this.#berth, 'jobs');
    this.#loads = Array.from({ length: CLIENTS }, () => this.#load());
    while (this.acknowledged.length < WARM_JOBS) await pause(10);
  }

  /** Deletes continue all the while; in the middle the server is killed and starts again. */
  async fillFor(seconds: number): Promise<void> {
    const doomed: string[] = [];
    for (let index = 0; index < Math.ceil((seconds * 1000) / DELETE_INTERVAL_MS); index += 1)
      doomed.push(await this.#createDoomed(`doomed ${index}`));
    this.#fill();
    this.#isFull = true;
    const before = this.acknowledged.length;
    const filler = setInterval(() => this.#fill(), FILL_INTERVAL_MS);
    const began = performance.now();
    const after = (share: number): boolean => performance.now() - began >= seconds * 1000 * share;
    let isRestarted = false;
    for (const id of doomed) {
      if (after(1)) break;
      if (!isRestarted && after(0.5)) {
        isRestarted = true;
        await this.#killAndRestart();
      }
      await this.#delete(id);
      await pause(DELETE_INTERVAL_MS);
    }
    while (!after(1)) await pause(10);
    clearInterval(filler);
    this.reserveBytes = statSync(join(this.#data, 'reserve'), { throwIfNoEntry: false })?.size ?? 0;
    this.acknowledgedWhileFull = this.acknowledged.length - before;
  }

  /** The time until a job is accepted. */
  async freeSpace(): Promise<number> {
    const connection = this.#connect();
    const began = performance.now();
    rmSync(this.#ballast);
    this.#isFull = false;
    for (;;) {
      const { status } = await connection.request('POST', `/v2/${this.#endpointId}/run`, JOB_BODY);
      if (status === 200) break;
      await pause(RETRY_MS);
    }
    connection.close();
    return performance.now() - began;
  }

  /** After another kill: what was acknowledged must be on the disk. */
  async countLost(): Promise<number> {
    this.#isOver = true;
    await Promise.all(this.#loads);
    await this.#killAndRestart();
    const connection = this.#connect();
    let lost = 0;
    for (const id of this.acknowledged) {
      const { status } = await connection.request('GET', `/v2/${this.#endpointId}/status/${id}`);
      if (status !== 200) lost += 1;
    }
    connection.close();
    return lost;
  }

  async #end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loads);
    await this.#berth.stop();
  }

  #connect(): HttpConnection {
    return new HttpConnection(this.#berth.url, `Bearer ${this.#berth.key}`);
  }

  async #load(): Promise<void> {
    let connection = this.#connect();
    while (!this.#isOver) {
      const from = performance.now();
      let answer: HttpResponse;
      try {
        answer = await connection.request('POST', `/v2/${this.#endpointId}/run`, JOB_BODY);
      } catch {
        // It was killed.
        connection.close();
        await pause(RETRY_MS);
        connection = this.#connect();
        continue;
      }
      if (answer.status === 200) {
        this.acknowledged.push((JSON.parse(answer.body) as { id: string }).id);
        if (!this.#isFull) await pause(RETRY_MS);
        continue;
      }
      if (answer.status === 503) this.refusals.push(performance.now() - from);
      else this.others.add(`${answer.status} ${answer.body.slice(0, 200)}`);
      await pause(RETRY_MS);
    }
    connection.close();
  }

  async #createDoomed(name: string): Promise<string> {
    const id = await createEndpoint(this.#berth, name);
    const connection = this.#connect();
    const { status, body } = await connection.request('POST', `/v2/${id}/run`, JOB_BODY);
    connection.close();
    if (status !== 200) throw new Error(`run answers ${status} ${body}`);
    return id;
  }

  async #delete(id: string): Promise<void> {
    const connection = this.#connect();
    const from = performance.now();
    const { status, body } = await connection.request('DELETE', `/v2/serverless/${id}`);
    this.deletes.push({ status, took: performance.now() - from, text: `${status} ${body}` });
    connection.close();
  }

  async #killAndRestart(): Promise<void> {
    process.kill(this.#berth.pid, 'SIGKILL');
    await this.#berth.stop();
    const began = performance.now();
    this.#berth = await startBerth({ data: this.#data, database: '' });
    if (this.restartMs === 0) this.restartMs = performance.now() - began;
  }

  /** Takes what is left, to the last byte. */
  #fill(): void {
    const file = openSync(this.#ballast, 'a');
    for (let piece = Buffer.alloc(1_000_000, 1); piece.length > 0; ) {
      try {
        if (writeSync(file, piece) < piece.length) break;
      } catch {
        piece = piece.subarray(0, Math.floor(piece.length / 2));
      }
    }
    closeSync(file);
  }
}
