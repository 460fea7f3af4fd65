import assert from 'node:assert/strict';
import { startPython } from '../../packages/testing/src/python-process.ts';
import type { PythonInterpreter } from '../../packages/testing/src/python-process.ts';
import { pythonEnvironment } from '../support/python-environment.mjs';

/** The Python that has this client. */
export function installedPython(name: string): PythonInterpreter {
  return { path: `${pythonEnvironment(name)}/bin/python` };
}

/**
 * Runs a program to its end and answers the JSON of the line that it says: `print("SAID " + json.dumps(…))`.
 */
export async function runPythonForJson(
  python: PythonInterpreter,
  source: string,
  env: Record<string, string>,
): Promise<Record<string, unknown>> {
  const program = startPython(python, source, env);
  await program.ended;
  const line = /^SAID (.*)$/m.exec(program.output())?.[1];
  assert.ok(line !== undefined, program.output());
  return JSON.parse(line) as Record<string, unknown>;
}
