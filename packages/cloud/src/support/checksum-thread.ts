// The thread of stream-checksums.ts.
import { parentPort } from 'node:worker_threads';
import { createChecksum } from './checksums.ts';
import type { Checksum } from './checksums.ts';
import type { ChecksumReply, ChecksumRequest } from './stream-checksums.ts';

const streams = new Map<number, Checksum[]>();

parentPort?.on('message', ({ id, names, bytes, last }: ChecksumRequest) => {
  const checksums = streams.get(id) ?? names.map(createChecksum);
  for (const checksum of checksums) checksum.update(bytes);
  // Gives the memory back now: this thread has hardly anything else to collect, and would keep hundreds of megabytes.
  (bytes.buffer as ArrayBuffer).transfer(0);
  if (last) streams.delete(id);
  else streams.set(id, checksums);
  const reply: ChecksumReply = { id, digests: last ? checksums.map((checksum) => checksum.digest()) : [] };
  parentPort?.postMessage(reply);
});
