interface Job {
  id: string;
  input: unknown;
}

/** What a handler returns is the job's output; what it prints is in the worker's log. */
export default function echo({ id, input }: Job): unknown {
  process.stdout.write(`job ${id}: ${JSON.stringify(input)}\n`);
  return input;
}
