interface Job {
  input: { how?: 'throw' | 'error' | 'exit' };
}

/** Three ways for a job to fail. */
export default function fail({ input: { how = 'throw' } }: Job) {
  // A return value with an `error` fails the job with that text.
  if (how === 'error') return { error: 'the handler says no' };
  // The worker is lost with the job: Berth retries it once on another one, then fails it.
  if (how === 'exit') process.exit(3);
  // A thrown error fails the job; its type and stack are reported.
  throw new RangeError('the handler threw this');
}
