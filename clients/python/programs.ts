import assert from 'node:assert/strict';
import { startPython } from '../../tests/support/python.ts';
import type { Python } from '../../tests/support/python.ts';
import { pythonEnvironment } from '../support/python-environment.mjs';

/** The Python that has this client. */
export function pythonOf(name: string): Python {
  return { path: `${pythonEnvironment(name)}/bin/python` };
}

/** Runs a program to its end and answers the JSON of the line that it says: `print("SAID " + json.dumps(…))`. */
export async function said(
  python: Python,
  source: string,
  env: Record<string, string>,
): Promise<Record<string, unknown>> {
  const program = startPython(python, source, env);
  await program.ended;
  const line = /^SAID (.*)$/m.exec(program.output())?.[1];
  assert.ok(line !== undefined, program.output());
  return JSON.parse(line) as Record<string, unknown>;
}
