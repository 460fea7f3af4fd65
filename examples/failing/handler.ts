interface Job {
  input: { how?: 'throw' | 'error' | 'exit' };
}

/** Three ways for a job to go wrong. */
export default function fail({ input: { how = 'throw' } }: Job) {
  // An answer with an `error` fails the job with that text.
  if (how === 'error') return { error: 'the handler says no' };
  // The worker is lost with the job: Berth tries it once more on another one, then gives it up.
  if (how === 'exit') process.exit(3);
  // What is thrown fails the job, with its type and stack.
  throw new RangeError('the handler threw this');
}
