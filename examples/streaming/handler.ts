import { setTimeout as pause } from 'node:timers/promises';

interface Job {
  input: { text?: string; pauseMs?: number };
}

/** What a generator yields is streamed, chunk by chunk, while the job runs. */
export default async function* words({ input }: Job) {
  for (const [index, word] of (input.text ?? 'a stream comes word by word').split(/\s+/).entries()) {
    await pause(input.pauseMs ?? 200);
    yield { index, word };
  }
}
