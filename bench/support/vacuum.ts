import pg from 'pg';

/**
 * What autovacuum does to a table some time after it was filled, done now: plans do not change in the middle
 * of a run.
 */
export async function vacuum(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('vacuum analyze');
  await client.end();
}
