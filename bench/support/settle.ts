import { runProgram } from './program.ts';

/** What was written before must not be on its way to the disk while something else is measured. */
export async function settleDisk(): Promise<void> {
  await runProgram('sync', []);
}
