/** Answers what it was asked. */
export default function echo(job: { input: unknown }): unknown {
  return job.input;
}
