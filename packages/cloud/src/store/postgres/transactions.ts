import type { Pool, PoolClient } from 'pg';
import { BerthError } from '../../support/errors.ts';
import { UniqueViolation } from '../database.ts';
import { errorCode, isConnectionError, isTimeout, refusesWrites } from './connection-errors.ts';

const UNIQUE_VIOLATION = '23505';

/** Serialization failure and deadlock: PostgreSQL asks to run the transaction again. */
const RETRYABLE = new Set(['40001', '40P01']);

const ATTEMPTS = 24;

/**
 * The pause between two attempts grows and is random, so that the same two transactions do not meet again.
 */
const MAX_BACKOFF_STEP_MS = 4;

export async function withClient<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await translateErrors(pool.connect());
  let broken = false;
  try {
    return await work(client);
  } catch (error) {
    broken = error instanceof BerthError && error.code === 'unavailable';
    throw error;
  } finally {
    client.release(broken);
  }
}

export function inTransaction<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  return withClient(pool, async (client) => {
    await translateErrors(client.query('begin'));
    try {
      const result = await translateErrors(work(client));
      await translateErrors(client.query('commit'));
      return result;
    } catch (error) {
      await client.query('rollback').catch(() => undefined);
      throw error;
    }
  });
}

export async function withTransactionRetries<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt === ATTEMPTS || !RETRYABLE.has(errorCode(error))) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, Math.random() * MAX_BACKOFF_STEP_MS * attempt));
  }
}

export async function translateErrors<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (errorCode(error) === UNIQUE_VIOLATION) throw new UniqueViolation(error);
    if (refusesWrites(error))
      throw new BerthError(
        'unavailable',
        `the database takes no writes (${errorCode(error)}); nothing was changed`,
        { cause: error, refusesWrites: true },
      );
    if (isTimeout(error))
      throw new BerthError(
        'unavailable',
        `the database did not finish in the time that its settings allow (${errorCode(error)}); try again`,
        { cause: error },
      );
    if (isConnectionError(error)) {
      throw new BerthError('unavailable', 'the database does not answer; try again', { cause: error });
    }
    throw error;
  }
}
