// Builds Pebble ahead of its test: with nothing in Go's cache that takes a busy machine longer than a test
// may.
import { goProgram, PEBBLE } from './go-program.ts';

const built = await goProgram(PEBBLE.name, PEBBLE.module, { build: true, timeoutMs: 600_000 });
if ('reason' in built) throw new Error(built.reason);
