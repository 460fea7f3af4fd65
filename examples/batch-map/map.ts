/**
 * Maps an endpoint over many inputs: submits all of them, a few at a time, then collects the results in
 * order. A job that is submitted is stored, so this program may be stopped and the results read later by
 * their ids.
 */
const AT_ONCE = 32;
const url = `${process.env['BERTH_URL'] ?? 'http://127.0.0.1:8484'}/v2/${process.env['ENDPOINT']}`;
const headers = {
  authorization: `Bearer ${process.env['BERTH_API_KEY']}`,
  'content-type': 'application/json',
};

interface Job {
  id: string;
  status: string;
  output: number;
  error?: string;
}

async function call(path: string, body?: unknown): Promise<Job> {
  const answer = await fetch(`${url}/${path}`, {
    headers,
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  });
  if (answer.ok) return (await answer.json()) as Job;
  throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
}

/** Runs `work` for each item, at most AT_ONCE at a time; the results are in the order of the items. */
async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const takeItems = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) results[at] = await work(items[at] as T);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, takeItems));
  return results;
}

/** Waits for the end of a job, however long it takes. */
async function result(id: string): Promise<number> {
  for (;;) {
    const job = await call(`status-sync/${id}`);
    if (job.status === 'COMPLETED') return job.output;
    if (!['IN_QUEUE', 'IN_PROGRESS'].includes(job.status))
      throw new Error(`${id}: ${job.status} ${job.error}`);
  }
}

const inputs = Array.from({ length: 1000 }, (_, n) => n);
const ids = await inParallel(inputs, async (n) => (await call('run', { input: { n } })).id);
const squares = await inParallel(ids, result);
process.stdout.write(`${squares.length} results, the last is ${squares.at(-1)}\n`);
