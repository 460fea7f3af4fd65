import type { EngineCheck } from '../../engine-check.ts';
import { findInterpreters, findUv } from './python-interpreters.ts';

const CHECK = 'python';

/** Berth runs without Python, so the check passes and says what cannot run. */
export const checkPython: EngineCheck = async (env) => {
  const versions = [...new Set((await findInterpreters(env)).map(({ version }) => version))];
  if (versions.length === 0)
    return { check: CHECK, ok: true, found: 'no Python 3 on PATH; folders with a handler.py do not run' };
  const tool = (await findUv(env)) === undefined ? "pip, or a uv of Berth's own" : 'uv';
  return {
    check: CHECK,
    ok: true,
    found: `Python ${versions.join(', ')}; dependencies are installed with ${tool}`,
  };
};
