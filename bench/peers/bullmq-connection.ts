import type { ConnectionOptions } from 'bullmq';
import { RedisClient } from './redis-client.ts';

/** `ioredis` is what BullMQ takes by default; it is a choice of its user and may not be installed. */
const DRIVER: string = 'ioredis';

export type BullmqConnection = ConnectionOptions & { disconnect(): void };
type DriverClass = new (options: { port: number; host: string; maxRetriesPerRequest: null }) => BullmqConnection;

/** Which client BullMQ speaks to Redis with here. */
export async function redisDriver(): Promise<string> {
  return (await loadDriver()) === undefined ? 'the client of this bench (ioredis is not installed)' : DRIVER;
}

export async function bullmqConnection(port: number): Promise<BullmqConnection> {
  const Driver = await loadDriver();
  const client: object = Driver === undefined ? new RedisClient(port) : new Driver({ port, host: '127.0.0.1', maxRetriesPerRequest: null });
  return client as BullmqConnection;
}

async function loadDriver(): Promise<DriverClass | undefined> {
  try {
    return ((await import(DRIVER)) as { default: DriverClass }).default;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
