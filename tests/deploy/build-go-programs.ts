// Builds Go programs ahead of their tests: with nothing in Go's cache that takes a busy machine longer than a
// test may. `build-go-programs.ts NAME...`, in this order; one that cannot be built does not keep the others back.
import { ACTIONLINT, HELM, KUBECONFORM, PEBBLE, goProgram } from './go-program.ts';

const TIMEOUT_MS = 900_000;
const reasons: string[] = [];
for (const name of process.argv.slice(2)) {
  const program = [PEBBLE, ACTIONLINT, KUBECONFORM, HELM].find((known) => known.name === name);
  if (program === undefined) throw new Error(`there is no program ${name}`);
  const built = await goProgram(name, program.module, { build: true, timeoutMs: TIMEOUT_MS }).catch(
    (error: Error) => ({ reason: error.message }),
  );
  if ('reason' in built) reasons.push(built.reason);
}
if (reasons.length > 0) throw new Error(reasons.join('; '));
