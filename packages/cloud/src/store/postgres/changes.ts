import type { PoolClient } from 'pg';
import { rowMoves } from '../job-moves.ts';
import type { Move, RowMoves } from '../job-moves.ts';
import type { Delivery, Job, JobChange, Payloads } from '../job-records.ts';
import { CHANGING_COLUMNS, changingValues, deliveryValues, JOBS_AND_LEASES } from '../job-rows.ts';
import { countMoves } from '../jobs.ts';
import type { AskedChange, Changed, CountMoves } from '../jobs.ts';
import type { Row, Value } from '../sql.ts';
import { columnsOf, unnest } from './arrays.ts';
import { SEEN_TO_CHANGE, seenJob } from './bundles.ts';
import { ADD_COUNTS } from './counts.ts';
import { TryAgain } from './database.ts';
import { SAVE_DELIVERY } from './deliveries.ts';
import {
  insertPlaces,
  LEAVE_OTHERS,
  LEAVE_PLACES,
  PLACE_COLUMNS,
  placeAlone,
  placeValues,
  STANDING,
  standingValues,
} from './places.ts';

const COUNTED = ['endpoint_id', 'queued', 'running', 'completed', 'failed', 'retried'];

export const KEY = ['endpoint_id', 'seq'];
/** In the order of their keys, so that two servers never wait for each other. */
const LOCK_JOBS = `select 1 from jobs as job where (job.endpoint_id, job.seq) in (select * from ${unnest(KEY)}) order by job.endpoint_id, job.seq for update`;
/** A statement of its own: whatever the lock waited for shows only in the next one. */
const LOCKED_JOBS = `select ${SEEN_TO_CHANGE} from ${JOBS_AND_LEASES} where (job.endpoint_id, job.seq) in (select * from ${unnest(KEY)})`;

/** A change that is to be written, and in whose place the job waits. */
interface PlacedMove extends Move {
  place: number | null;
}

/** Locks the jobs, then asks each rule. */
export async function applyChanges(
  client: PoolClient,
  server: string,
  items: readonly AskedChange[],
): Promise<(Changed | undefined)[]> {
  const keys = columnsOf(
    items.map(({ endpointId, seq }) => [endpointId, seq]),
    KEY,
  );
  await client.query({ name: 'lock jobs', text: LOCK_JOBS, values: keys });
  const { rows } = await client.query<Value[]>({
    name: 'locked jobs',
    text: LOCKED_JOBS,
    values: keys,
    rowMode: 'array',
  });
  const jobs = new Map(rows.map(seenJob).map((seen) => [keyOf(seen.job.endpointId, seen.job.seq), seen]));
  const moves: PlacedMove[] = [];
  const results = items.map((item): Changed | undefined => {
    const key = keyOf(item.endpointId, item.seq);
    const seen = jobs.get(key);
    if (seen === undefined) return undefined;
    const { job: before, place } = seen;
    const change = item.next(before);
    if (change === undefined) return { before, after: before, changed: false };
    moves.push({ before, change, place });
    // A later item of the same batch sees what this one did.
    if (change.remove === true) jobs.delete(key);
    else jobs.set(key, { job: change.job, place });
    return { before, after: change.job, changed: true };
  });
  await writeChanges(client, `${server} change`, moves);
  return results;
}

async function writeChanges(client: PoolClient, lane: string, moves: PlacedMove[]): Promise<void> {
  if (moves.length === 0) return;
  for (const { before, change } of moves)
    if (change.delivery !== undefined) await writeDelivery(client, before, change);
  const cleared = moves.filter(({ change }) => change.remove === true || change.clearChunks === true);
  if (cleared.length > 0)
    await client.query(
      `delete from job_chunks where (endpoint_id, seq) in (select * from ${unnest(KEY)})`,
      columnsOf(
        cleared.map(({ before }) => [before.endpointId, before.seq]),
        KEY,
      ),
    );
  const merged = lastOfEach(moves).map((move) => ({
    ...move,
    rows: move.change.remove === true ? removal(move.before) : rowMoves(move.before, move.change),
  }));
  const some = (which: (rows: RowMoves) => boolean): typeof merged =>
    merged.filter(({ rows }) => which(rows));

  // The lock is on the job's own row. A take that was committed meanwhile shows in that a place or a lease is not as it was seen: then all is looked at again.
  // A job that waits on gets a place of its own: what the place says of a job is what a take hands out.
  const staying = merged.filter(
    ({ before, change }) =>
      change.remove !== true && before.status === 'IN_QUEUE' && change.job.status === 'IN_QUEUE',
  );
  const leaving = [...some(({ waiting }) => waiting === 'leaves'), ...staying];
  if (leaving.length > 0)
    await leavePlaces(
      client,
      columnsOf(
        leaving.map(({ before, place }) => standingValues(before, place)),
        STANDING,
      ),
      leaving.length,
    );
  const renewed = some(({ lease }) => lease === 'renewed');
  if (renewed.length > 0)
    await expect(
      client,
      renewed.length,
      RENEW_LEASES,
      columnsOf(
        renewed.map(({ before, change: { job } }) => [...heldLease(before), job.dueAt]),
        RENEWED,
      ),
    );
  const ended = some(({ lease }) => lease === 'ends');
  if (ended.length > 0)
    await expect(
      client,
      ended.length,
      END_LEASES,
      columnsOf(
        ended.map(({ before }) => heldLease(before)),
        HELD_LEASE,
      ),
    );
  const entering = [...some(({ waiting }) => waiting === 'enters'), ...staying];
  if (entering.length > 0)
    await client.query({
      ...ENTER_QUEUE,
      values: columnsOf(
        entering.map(({ change: { job } }) => placeValues(placeAlone({ job }))),
        PLACE_COLUMNS,
      ),
    });

  const gone = merged.filter(({ change }) => change.remove === true);
  if (gone.length > 0)
    await client.query(
      `delete from jobs where (endpoint_id, seq) in (select * from ${unnest(KEY)})`,
      columnsOf(
        gone.map(({ before }) => [before.endpointId, before.seq]),
        KEY,
      ),
    );
  const written = merged.filter(({ change, rows }) => change.remove !== true && rows.row);
  const values = columnsOf(
    written.map(({ change: { job, output, error }, rows }) => [
      job.endpointId,
      job.seq,
      ...changingValues(job),
      output ?? null,
      output === undefined ? 0 : 1,
      error ?? null,
      error === undefined ? 0 : 1,
      rows.look ? 1 : 0,
    ]),
    UPDATED,
  );
  const counts = columnsOf(
    countTotals(moves).map(([endpointId, sum]) => [
      endpointId,
      sum.queued,
      sum.running,
      sum.completed,
      sum.failed,
      sum.retried,
    ]),
    COUNTED,
  );
  const looks = written.some(({ rows }) => rows.look);
  await client.query({
    name: looks ? 'update jobs and looks' : 'update jobs',
    text: updateJobs(looks),
    values: [...values, ...counts, lane],
  });
}

const ENTER_QUEUE = { name: 'enter queue', text: insertPlaces() };

async function leavePlaces(client: PoolClient, values: string[], count: number): Promise<void> {
  let left = 0;
  for (const statement of [LEAVE_PLACES, LEAVE_OTHERS]) {
    if (left === count) return;
    const { rows } = await client.query<{ left: number }>({ ...statement, values });
    for (const row of rows) left += row.left;
  }
  if (left !== count) throw new TryAgain('a job moved on while it was changed');
}

const HELD_LEASE = [...KEY, 'lease', 'due_at'];
const RENEWED = [...HELD_LEASE, 'look_at'];
const SAME_LEASE =
  'lease.endpoint_id = given.endpoint_id and lease.seq = given.seq and lease.lease = given.lease and lease.due_at = given.due_at';
const RENEW_LEASES = {
  name: 'renew leases',
  text: `update job_leases as lease set due_at = given.look_at from ${unnest(RENEWED)} where ${SAME_LEASE}`,
};
const END_LEASES = {
  name: 'end leases',
  text: `delete from job_leases as lease using ${unnest(HELD_LEASE)} where ${SAME_LEASE}`,
};

function heldLease(job: Job): Value[] {
  return [job.endpointId, job.seq, job.lease, job.dueAt];
}

async function expect(
  client: PoolClient,
  count: number,
  statement: { name: string; text: string },
  values: unknown[],
): Promise<void> {
  const { rowCount } = await client.query({ ...statement, values });
  if (rowCount !== count) throw new TryAgain('a job moved on while it was changed');
}

function removal(before: Job): RowMoves {
  return {
    waiting: before.status === 'IN_QUEUE' ? 'leaves' : undefined,
    lease: before.status === 'IN_PROGRESS' ? 'ends' : undefined,
    row: false,
    look: false,
  };
}

const UPDATED = [...KEY, ...CHANGING_COLUMNS, 'output', 'has_output', 'error', 'has_error', 'looks'];
/** Where no row has to be looked at earlier, the column with the index is not named, and the index is left alone. */
const updateJobs = (looks: boolean): string => `with given as (select * from ${unnest(UPDATED)}),
  written as (update jobs set place = null, ${CHANGING_COLUMNS.map((column) => `${column} = given.${column}`).join(', ')},
      output = case when given.has_output = 1 then given.output else jobs.output end, error = case when given.has_error = 1 then given.error else jobs.error end
      ${looks ? ', look_at = case when given.looks = 1 then least(jobs.look_at, given.ttl_at) else jobs.look_at end' : ''}
    from given where jobs.endpoint_id = given.endpoint_id and jobs.seq = given.seq)
  ${ADD_COUNTS(`select endpoint_id, $${UPDATED.length + COUNTED.length + 1}, ${COUNTED.slice(1).join(', ')} from ${unnest(COUNTED, UPDATED.length + 1, 'moved')}`)}`;

async function writeDelivery(client: PoolClient, before: Job, change: JobChange): Promise<void> {
  const {
    rows: [row],
  } = await client.query<Row>('select request, output, error from jobs where endpoint_id = $1 and seq = $2', [
    before.endpointId,
    before.seq,
  ]);
  const kept = payloadsFrom(row ?? {});
  const payloads: Payloads = {
    request: kept.request,
    output: change.output === undefined ? kept.output : change.output,
    error: change.error === undefined ? kept.error : change.error,
  };
  const delivery: Delivery | undefined = change.delivery?.(payloads);
  if (delivery !== undefined) await client.query(SAVE_DELIVERY, deliveryValues(delivery));
}

/** Where one batch changes a job twice, only the last version is written, with the payloads of both. */
function lastOfEach(moves: PlacedMove[]): PlacedMove[] {
  const last = new Map<string, PlacedMove>();
  for (const move of moves) {
    const key = keyOf(move.before.endpointId, move.before.seq);
    const earlier = last.get(key);
    last.delete(key);
    last.set(
      key,
      earlier === undefined ? move : { ...earlier, change: { ...earlier.change, ...move.change } },
    );
  }
  return [...last.values()];
}

function countTotals(moves: Move[]): [string, CountMoves][] {
  const totals = new Map<string, CountMoves>();
  for (const { before, change } of moves) {
    const gone =
      change.remove === true && (change.job.status === 'IN_QUEUE' || change.job.status === 'IN_PROGRESS');
    const move = countMoves(before, gone ? undefined : change.job);
    const sum = totals.get(before.endpointId) ?? {
      queued: 0,
      running: 0,
      completed: 0,
      failed: 0,
      retried: 0,
    };
    for (const name of Object.keys(move) as (keyof CountMoves)[]) sum[name] += move[name];
    totals.set(before.endpointId, sum);
  }
  return [...totals];
}

export function keyOf(endpointId: string, seq: number): string {
  return `${endpointId} ${seq}`;
}

function payloadsFrom(row: Row): Payloads {
  return {
    request: row['request'] as string,
    output: (row['output'] ?? null) as string | null,
    error: (row['error'] ?? null) as string | null,
  };
}
