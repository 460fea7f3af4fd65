import { Redis } from 'ioredis';

/** The client that BullMQ takes by default, with the one option that its workers demand. */
export function bullmqConnection(port: number): Redis {
  return new Redis({ host: '127.0.0.1', port, maxRetriesPerRequest: null });
}
